#include "yoke/launch/node_look.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/probe/probe.h"

namespace yoke::launch {

template <class Visitor>
void visit_fields(Visitor& visit, LookQuestion& question) {
  visit.optional("program", question.program);
  visit.optional("ports", question.ports);
  visit.optional("model", question.model);
  visit.optional("image", question.image);
}
template <class Visitor>
void visit_fields(Visitor& visit, NodeLookAnswer& answer) {
  visit.required("program", answer.program);
  visit.optional("taken", answer.taken);
  visit.required("model_exists", answer.model_exists);
  visit.required("model_bytes", answer.model_bytes);
  visit.required("model_files", answer.model_files);
  visit.required("model_hash", answer.model_hash);
  visit.required("image", answer.image);
  visit.required("image_problem", answer.image_problem);
  visit.required("swap", answer.swap);
  visit.optional("memory", answer.memory);
  visit.optional("earlyoom", answer.earlyoom);
  visit.required("disk_free", answer.disk_free);
}

namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t kSmallFile = 1 << 20;

std::string find_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? program : "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const std::string file = folder + "/" + program;
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

bool is_taken(int port) {
  const auto free = try_to([&] { return listen_tcp({"0.0.0.0", port}); });
  return !free && free.error().code() == ErrorCode::kConflict;
}

// Its words where it runs: "/usr/bin/earlyoom -m 10 -s 100".
std::optional<std::string> find_earlyoom() {
  std::error_code failure;
  for (fs::directory_iterator entry("/proc", failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto comm = try_to([&] { return read_file(entry->path() / "comm", Bytes{64}); });
    if (!comm || trim(*comm) != "earlyoom") continue;
    auto words = try_to([&] { return read_file(entry->path() / "cmdline", Bytes{4096}); }).value_or("earlyoom");
    std::replace(words.begin(), words.end(), '\0', ' ');
    return std::string(trim(words));
  }
  return std::nullopt;
}

void inspect_image(const std::string& image, NodeLookAnswer& answer) {
  if (image.empty()) return;
  const auto asked = try_to([&] {
    return run({.argv = {"docker", "image", "inspect", "--format", "{{.Id}}", image}, .timeout = Seconds{10}});
  });
  if (!asked) {
    answer.image_problem = asked.error().message();
  } else if (asked->ok()) {
    answer.image = std::string(trim(asked->out));
  } else if (asked->err.find("No such image") == std::string::npos) {
    answer.image_problem = asked->describe();
  }
}

Bytes free_bytes(const fs::path& place) {
  struct statvfs facts {};
  if (statvfs(place.c_str(), &facts) != 0) return Bytes{0};
  return Bytes{static_cast<std::int64_t>(facts.f_bavail * facts.f_frsize)};
}

// Files below a folder with their sizes, by relative path; links are followed, as the Hub's cache consists of them.
std::map<std::string, std::uintmax_t> files_below(const fs::path& folder) {
  std::map<std::string, std::uintmax_t> files;
  std::error_code failure;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code ignored;
    if (entry->path().filename().native().starts_with('.')) {
      if (entry->is_directory(ignored)) entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_regular_file(ignored)) files[entry->path().lexically_relative(folder)] = entry->file_size(ignored);
  }
  return files;
}

}  // namespace

std::string folder_fingerprint(const std::string& folder) {
  std::string text;
  for (const auto& [name, size] : files_below(folder)) {
    text += fmt::format("{} {}", name, size);
    if (size < kSmallFile) text += " " + sha256_file_hex(fs::path(folder) / name);
    text += "\n";
  }
  return sha256_hex(text);
}

NodeLookAnswer inspect_here(const LookQuestion& question) {
  NodeLookAnswer answer;
  if (!question.program.empty()) answer.program = find_in_path(question.program);
  for (const int port : question.ports) {
    if (is_taken(port)) answer.taken.push_back(port);
  }
  std::error_code failure;
  const fs::path model(question.model);
  answer.model_exists = !question.model.empty() && fs::exists(model, failure);
  if (answer.model_exists && fs::is_directory(model, failure)) {
    for (const auto& [name, size] : files_below(model)) {
      answer.model_bytes.value += static_cast<std::int64_t>(size);
      ++answer.model_files;
    }
    answer.model_hash = folder_fingerprint(question.model);
  } else if (answer.model_exists) {
    answer.model_bytes = Bytes{static_cast<std::int64_t>(fs::file_size(model, failure))};
    answer.model_files = 1;
    answer.model_hash = fmt::format("{}", answer.model_bytes.value);
  }
  inspect_image(question.image, answer);
  const spec::Memory memory = probe_machine(probe::quick_sources_here()).memory;
  answer.swap = memory.swap_total.value_or(Bytes{0});
  answer.memory = memory.total.value_or(Bytes{0});
  answer.earlyoom = find_earlyoom();
  const char* home = std::getenv("HOME");
  answer.disk_free = free_bytes(answer.model_exists ? model : fs::path(home && *home ? home : "/"));
  return answer;
}

Document to_json(const LookQuestion& question) { return write_fields(question); }
void from_json(const Document& document, NodeLookAnswer& answer) { read_fields(document, answer); }

Document answer_launch_look(const Document& question, agent::AgentContext&) {
  return to_document(inspect_here(from_json<LookQuestion>(question)));
}

}  // namespace yoke::launch
