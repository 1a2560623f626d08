#include "yoke/weights/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::weights {
namespace fs = std::filesystem;
namespace {

bool holds_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "config.json", ignored);
}

bool is_part_of_id(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

// "org/name", as Hugging Face writes them.
bool looks_like_id(const std::string& word) {
  const std::size_t slash = word.find('/');
  return slash != std::string::npos && is_part_of_id(word.substr(0, slash)) && is_part_of_id(word.substr(slash + 1));
}

std::vector<fs::path> model_places() {
  std::vector<fs::path> places = places_beside_program("models");
  places.insert(places.begin(), "models");
  return places;
}

// Names of the model folders in those places.
std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const fs::path& place : model_places()) {
    std::error_code failure;
    for (fs::directory_iterator entry(place, failure), end; !failure && entry != end; entry.increment(failure)) {
      if (holds_model(entry->path())) names.push_back(entry->path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<fs::path> find_named(std::string_view name) {
  for (const fs::path& place : model_places()) {
    if (holds_model(place / name)) return fs::canonical(place / name);
  }
  return std::nullopt;
}

fs::path hub_cache() {
  const auto variable = [](const char* name) -> std::optional<fs::path> {
    const char* value = std::getenv(name);
    return value && *value ? std::optional<fs::path>(value) : std::nullopt;
  };
  if (const auto folder = variable("HF_HUB_CACHE")) return *folder;
  if (const auto home = variable("HF_HOME")) return *home / "hub";
  if (const auto home = variable("HOME")) return *home / ".cache/huggingface/hub";
  return {};
}

[[noreturn]] void refuse_gguf(const std::string& shown) {
  const std::string name = fs::path(shown).stem();
  throw Error(ErrorCode::kUnsupported, fmt::format("'{}' is a GGUF file, and a model is a folder", shown),
              fmt::format("make one of it: 'yoke model import {} {}'; then name the folder {}", shown, name, name));
}

constexpr const char* kPathHint = "give the path of a folder with config.json and *.safetensors";

[[noreturn]] void refuse_missing(const std::string& word, const std::string& shown) {
  if (looks_like_id(word)) {
    const std::string name = word.substr(word.find('/') + 1);
    throw Error(ErrorCode::kNotFound,
                fmt::format("there is no model folder '{}' here, nor in Hugging Face's cache", shown),
                fmt::format("download it: 'yoke prep model {} {}'; then name the folder {}", shown, name, name));
  }
  if (word.find('/') == std::string::npos) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no model folder '{}' in this folder", shown),
                known_names().empty() ? kPathHint : suggest(word, known_names(), "models that are here"));
  }
  throw Error(ErrorCode::kNotFound, fmt::format("there is no model folder '{}'", shown), kPathHint);
}

}  // namespace

std::optional<fs::path> shipped_model() { return find_named(kShippedModelName); }

std::optional<fs::path> find_in_hub_cache(const std::string& id) {
  const fs::path cache = hub_cache();
  if (cache.empty() || !looks_like_id(id)) return std::nullopt;
  const std::size_t slash = id.find('/');
  const fs::path model = cache / fmt::format("models--{}--{}", id.substr(0, slash), id.substr(slash + 1));
  const auto revision = try_to([&] { return std::string(trim(read_file(model / "refs/main", Bytes{256}))); });
  if (!revision || !is_part_of_id(*revision)) return std::nullopt;
  const fs::path folder = model / "snapshots" / *revision;
  return holds_model(folder) ? std::optional(folder) : std::nullopt;
}

fs::path find_model_folder(const std::string& word) {
  if (word.empty()) {
    if (const auto shipped = shipped_model()) {
      log(LogLevel::kDebug, "no model was named: the one that ships with yoke, {}", shipped->native());
      return *shipped;
    }
    throw Error(ErrorCode::kNotFound, "no model was named, and the one that ships with yoke is not installed",
                "name a model's folder: yoke run MODEL");
  }
  const std::string shown = printable(word, 300);
  std::error_code ignored;
  if (holds_model(word)) return fs::absolute(word);
  if (word.ends_with(".gguf")) refuse_gguf(shown);
  if (fs::is_directory(word, ignored)) {
    const bool has_gguf = std::any_of(fs::directory_iterator(word, ignored), fs::directory_iterator(),
                                      [](const auto& entry) { return entry.path().extension() == ".gguf"; });
    if (has_gguf) refuse_gguf(shown);
    throw Error(ErrorCode::kNotFound, fmt::format("'{}' is no model folder: it has no config.json", shown),
                "a model is a folder with config.json, tokenizer.json and *.safetensors, as Hugging Face has them");
  }
  if (fs::exists(word, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("'{}' is a file, not a model folder", shown),
                "give the folder that holds config.json and *.safetensors");
  }
  if (is_part_of_id(word)) {
    if (const auto named = find_named(word)) return *named;
  }
  if (const auto cached = find_in_hub_cache(word)) {
    log(LogLevel::kDebug, "{} is in Hugging Face's cache: {}", shown, cached->native());
    return *cached;
  }
  refuse_missing(word, shown);
}

std::optional<std::string> find_gpu(const FileTree& machine) {
  constexpr std::string_view kDevices = "/sys/bus/pci/devices";
  for (const std::string& device : machine.list(kDevices)) {
    const auto vendor = machine.read_trimmed(fmt::format("{}/{}/vendor", kDevices, device));
    const auto kind = machine.read_trimmed(fmt::format("{}/{}/class", kDevices, device));
    // 0x03: display controllers, by which GPUs without a display go too (0x0302).
    if (vendor == "0x10de" && kind && kind->starts_with("0x03")) return fmt::format("NVIDIA GPU at {}", device);
  }
  return std::nullopt;
}

std::vector<std::string> with_model_folder(std::vector<std::string> arguments, const std::string& word,
                                           const fs::path& folder) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (word.empty()) {
    arguments.insert(dashes, folder.native());
  } else if (const auto found = std::find(arguments.begin(), dashes, word); found != dashes) {
    *found = folder.native();
  }
  return arguments;
}

}  // namespace yoke::weights
