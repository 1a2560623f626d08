// What launchers, terminals and containers put around a line of NCCL, and pieces of the line itself.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke {
namespace {

// {"log":"spark-a:10:10 [0] NCCL INFO …\n","stream":"stderr"}: the names of Docker, of collectors of logs and of the
// journal.
std::optional<std::string> text_in_json(std::string_view line) {
  if (!line.starts_with("{\"")) return std::nullopt;
  try {
    const Document document = parse_json(line, "log");
    for (const char* const name : {"log", "message", "msg", "MESSAGE"}) {
      const Document* const text = document.find(name);
      if (text != nullptr && text->kind == Document::Kind::kText) return text->text;
    }
  } catch (const Error&) {
    // A line of the job's own that only looks like JSON.
  }
  return std::nullopt;
}

// "\x1b[36m": ESC, a bracket, numbers, and a letter that says what they do.
std::string without_colours(std::string_view text) {
  std::string plain;
  while (true) {
    const std::size_t escape = text.find("\x1b[");
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) return plain;
    const std::size_t letter = text.find_first_not_of("0123456789;:?", escape + 2);
    if (letter == std::string_view::npos) return plain;
    text.remove_prefix(letter + 1);
  }
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-'; }

// The end of the text that is made of such characters, which is taken off it.
template <typename Is>
std::string_view take_back(std::string_view& text, Is is) {
  const auto start = std::find_if_not(text.rbegin(), text.rend(), is).base();
  const std::string_view taken = text.substr(static_cast<std::size_t>(start - text.begin()));
  text.remove_suffix(taken.size());
  return taken;
}

// "…spark-a:10:10": the name, where the text ends so.
std::string_view name_at_end(std::string_view text) {
  for (int number = 0; number < 2; ++number) {  // of the process and of the thread
    if (take_back(text, is_digit).empty() || !text.ends_with(':')) return {};
    text.remove_suffix(1);
  }
  return take_back(text, is_of_name);
}

}  // namespace

std::string plain_line(std::string_view line) {
  const std::optional<std::string> inner = text_in_json(line);
  return std::string(trim(without_colours(inner ? std::string_view(*inner) : line)));
}

std::string host_before(std::string_view before) {
  // From the end, where NCCL's own words are: launchers write brackets too.
  for (std::size_t bracket = before.rfind(" ["); bracket != std::string_view::npos; bracket = before.rfind(" [")) {
    before = before.substr(0, bracket);
    if (const std::string_view name = name_at_end(before); !name.empty()) return printable(name, 64);
  }
  return "an untold host";
}

std::optional<std::string_view> between(std::string_view line, std::string_view before, std::string_view after) {
  const std::size_t start = line.find(before);
  if (start == std::string_view::npos) return std::nullopt;
  line.remove_prefix(start + before.size());
  return line.substr(0, line.find(after));
}

std::optional<int> number_behind(std::string_view line, std::string_view before) {
  const auto text = between(line, before, "\n");
  if (!text) return std::nullopt;
  int number = 0;
  const auto [rest, failure] = std::from_chars(text->data(), text->data() + text->size(), number);
  return failure == std::errc{} && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace yoke
