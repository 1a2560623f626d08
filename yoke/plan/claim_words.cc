#include "yoke/plan/claim_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke::plan {
namespace {

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// "23,477", "69.5" and "45k"; nothing where the word is more than a number.
std::optional<double> number_of(std::string_view word) {
  std::string digits;
  for (const char c : word) {
    if (c != ',') digits += c;
  }
  const double scale = digits.ends_with('k') ? 1e3 : digits.ends_with('m') ? 1e6 : 1;
  if (scale > 1) digits.pop_back();
  double value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc{} || end != digits.data() + digits.size() || !(value > 0) || value * scale > 1e12)
    return std::nullopt;
  return value * scale;
}

constexpr std::array kUnits = {std::string_view("tok/s"), std::string_view("t/s"), std::string_view("tps"),
                               std::string_view("s/image")};
bool is_unit(std::string_view word) { return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end(); }

// As people write it, in the words that are looked for below.
std::string usual_words(std::string_view claim) {
  std::string text = " " + lowered(claim) + " ";
  for (const auto& [written, usual] :
       {std::pair{"tokens per second", "tok/s"}, std::pair{"tokens a second", "tok/s"},
        std::pair{"tokens/second", "tok/s"}, std::pair{"tokens/sec", "tok/s"}, std::pair{"tokens/s", "tok/s"},
        std::pair{"tok/sec", "tok/s"}, std::pair{"toks/s", "tok/s"}, std::pair{"seconds per image", "s/image"},
        std::pair{"seconds an image", "s/image"}, std::pair{"seconds/image", "s/image"},
        std::pair{"s per image", "s/image"}, std::pair{"sec/image", "s/image"}, std::pair{"s/img", "s/image"}}) {
    const std::string_view from(written);
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
      text.replace(at, from.size(), usual);
    }
  }
  return text;
}

// Words without what stands around them: quotes, brackets, a comma or full stop at the end, "~". A unit that hangs on
// its number becomes a word.
std::vector<std::string> words_of(std::string_view claim) {
  std::vector<std::string> words;
  for (const std::string& part : split(usual_words(claim), ' ')) {
    std::string_view word = trim(part);
    while (!word.empty() && std::string_view("\"'(~[=:@").find(word.front()) != std::string_view::npos) {
      word.remove_prefix(1);
    }
    while (!word.empty() && std::string_view("\"')],.;:!?").find(word.back()) != std::string_view::npos) {
      word.remove_suffix(1);
    }
    if (word.empty()) continue;
    for (const std::string_view unit : kUnits) {
      if (word.size() > unit.size() && word.ends_with(unit) && number_of(word.substr(0, word.size() - unit.size()))) {
        words.emplace_back(word.substr(0, word.size() - unit.size()));
        word = unit;
        break;
      }
    }
    words.emplace_back(word);
  }
  return words;
}

bool is_filler(std::string_view word) {
  static constexpr std::array kFillers = {"on",   "with", "at",  "in",    "using", "a",    "the",    "of",    "and",
                                          "for",  "gets", "get", "runs",  "run",   "does", "model",  "by",    "over",
                                          "dgx",  "dell", "i",   "my",    "is",    "it",   "output", "x",     "nvidia",
                                          "from", "to",   "two", "units", "nodes", "node", "about",  "decode"};
  return std::find(kFillers.begin(), kFillers.end(), word) != kFillers.end();
}

std::optional<Machines> machines_named(std::string name) {
  if (const auto parsed = try_to([&] { return parse_machines(name); })) return *parsed;
  if (!name.ends_with('s')) return std::nullopt;
  name.pop_back();  // "2 sparks"
  const auto parsed = try_to([&] { return parse_machines(name); });
  return parsed ? std::optional(*parsed) : std::nullopt;
}

// "2", "2x" and "two" as "2"; empty where the word counts nothing.
std::string count_of(std::string word) {
  static constexpr std::array kNumbers = {"one", "two", "three", "four", "five", "six", "seven", "eight"};
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    if (word == kNumbers[i]) return std::to_string(i + 1);
  }
  if (word.ends_with('x')) word.pop_back();
  const bool is_count = std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_count ? word : "";
}

// "2xspark", "2x spark", "2 x spark", "two dgx sparks", "spark". How many words it took; 0: none is a machine.
std::size_t take_machines(const std::vector<std::string>& parts, std::size_t at, ClaimWords& words) {
  if (auto found = machines_named(parts[at])) {
    words.machines = std::move(*found);
    return 1;
  }
  const std::string count = count_of(parts[at]);
  if (count.empty()) return 0;
  for (std::size_t next = at + 1; next < parts.size() && next <= at + 3; ++next) {
    if (auto found = machines_named(count + "x" + parts[next])) {
      words.machines = std::move(*found);
      return next - at + 1;
    }
    if (!is_filler(parts[next])) return 0;
  }
  return 0;
}

// A catalogued name of up to five words: "llama 3.1 70b" is llama-3.1-70b.
std::size_t take_model(const std::vector<std::string>& parts, std::size_t at, ClaimWords& words) {
  for (std::size_t count = std::min<std::size_t>(5, parts.size() - at); count >= 1; --count) {
    std::string name = parts[at];
    for (std::size_t i = 1; i < count; ++i) name += "-" + parts[at + i];
    if (const spec::ImageModelFacts* image = spec::find_image_model_facts(name)) {
      words.image = *image;
      return count;
    }
    if (const spec::ModelFacts* model = spec::find_model_facts(name)) {
      words.model = *model;
      return count;
    }
  }
  return 0;
}

bool take_setting(const std::string& word, ClaimWords& words) {
  if (word == "train" || word == "training" || word == "pretraining") {
    words.is_training = true;
  } else if (word == "prefill" || word == "prompt") {
    words.is_prefill = true;
  } else if (const WeightFormat* format = find_format(word)) {
    words.format = format;
  } else if (const auto engine = try_to([&] { return from_json<Engine>(Document::string(word)); })) {
    words.engine = *engine;
  } else {
    return false;
  }
  return true;
}

// A number with its unit is the claim; one beside "requests" or "batch" counts them. How many words it took.
std::size_t take_number(const std::vector<std::string>& parts, std::size_t at, ClaimWords& words) {
  const std::string next = at + 1 < parts.size() ? parts[at + 1] : "";
  if (parts[at] == "batch" && number_of(next)) {
    words.requests = *number_of(next);
    return 2;
  }
  const auto number = number_of(parts[at]);
  if (!number) return 0;
  if (is_unit(next)) {
    words.value = *number;
    words.unit = next == "s/image" ? next : "tok/s";
    return 2;
  }
  if (next == "requests" || next == "streams" || next == "users" || next == "concurrent") {
    words.requests = *number;
    return 2;
  }
  return 0;
}

// The unknown word that is nearest to one of these names.
std::string nearest_hint(const ClaimWords& words, const std::vector<std::string>& names) {
  for (const std::string& word : words.unknown) {
    if (const auto meant = nearest(word, names)) return fmt::format("did you mean '{}'? ", *meant);
  }
  return "";
}

}  // namespace

ClaimWords read_claim(std::string_view claim) {
  ClaimWords words;
  const std::vector<std::string> parts = words_of(claim);
  std::vector<double> bare;
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t taken = take_number(parts, i, words);
    if (taken == 0) taken = take_machines(parts, i, words);
    if (taken == 0 && !words.model && !words.image) taken = take_model(parts, i, words);
    if (taken == 0 && take_setting(parts[i], words)) taken = 1;
    if (taken == 0) {
      if (const auto number = number_of(parts[i])) {
        bare.push_back(*number);
      } else if (!is_filler(parts[i])) {
        unknown.push_back(parts[i]);
      }
      taken = 1;
    }
    i += taken;
  }
  // A size stands for a model only where none is named; a bare number for the claim only where it is the only one.
  for (auto word = unknown.begin(); word != unknown.end() && !words.model && !words.image; ++word) {
    auto sized = spec::facts_from_size(*word);
    if (!sized) continue;
    words.model = std::move(*sized);
    unknown.erase(word);
    break;
  }
  if (words.value <= 0 && bare.size() == 1) words.value = bare.front();
  words.unknown = std::move(unknown);
  return words;
}

void refuse_gaps(const ClaimWords& words) {
  const std::string example = "such as: yoke plan explain \"69 tok/s gpt-oss-120b 2xspark\"";
  if (words.value <= 0) throw Error(ErrorCode::kUsage, "the claim has no number with its unit", example);
  if (!words.model && !words.image) {
    std::vector<std::string> names = spec::model_fact_names();
    for (const std::string& name : spec::image_model_names()) names.push_back(name);
    throw Error(ErrorCode::kUsage, "the claim names no model that yoke knows", nearest_hint(words, names) + example);
  }
  if (!words.machines) {
    std::vector<std::string> names;
    for (const std::string& name : spec::hardware_fact_names()) {
      names.push_back(name);
      names.push_back("2x" + name);
    }
    throw Error(ErrorCode::kUsage, "the claim names no machines", nearest_hint(words, names) + example);
  }
  const bool is_time = words.unit == "s/image";
  if (!words.unit.empty() && is_time != words.image.has_value()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the claim counts {} for a model that {}", words.unit,
                            words.image ? "draws images" : "makes tokens"),
                words.image ? "s/image is its unit" : "tok/s is its unit");
  }
}

}  // namespace yoke::plan
