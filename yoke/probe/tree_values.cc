#include "yoke/probe/tree_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"

namespace yoke::probe {

Error broken_file(std::string_view path, std::string_view wanted, std::string_view content) {
  return Error(ErrorCode::kInvalid,
               fmt::format("{}: this must be {}, not '{}'", printable(path), wanted, printable(trim(content), 60)),
               "a capture may be damaged; on a running machine this is worth a report");
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_number(const FileTree& tree, const std::string& path) {
  const std::optional<std::string> text = tree.read_trimmed(path);
  if (!text) return std::nullopt;
  const std::optional<std::int64_t> value = to_number(*text);
  if (!value) throw broken_file(path, "a whole number", *text);
  return value;
}

std::optional<std::string> read_nonempty(const FileTree& tree, const std::string& path) {
  std::optional<std::string> text = tree.read_trimmed(path);
  if (text && text->empty()) return std::nullopt;
  return text;
}

std::optional<std::string> read_if_allowed(const FileTree& tree, const std::string& path) {
  try {
    return tree.read(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kPermission) return std::nullopt;
    throw;
  }
}

std::vector<Assignment> parse_assignments(std::string_view text) {
  std::vector<Assignment> assignments;
  for (const std::string& line : split(text, '\n')) {
    std::string_view rest = trim(line);
    const std::size_t equals = rest.find('=');
    if (rest.starts_with('#') || equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = trim(rest.substr(0, equals));
    std::string_view value = trim(rest.substr(equals + 1));
    const bool quoted =
        value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.front() == value.back();
    if (quoted) value = value.substr(1, value.size() - 2);
    assignments.push_back({std::string(name), std::string(value)});
  }
  return assignments;
}

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kNameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

// One word of a shell, taken off the front; nothing where the shell would have to work it out.
std::optional<std::string> take_plain_word(std::string_view& rest) {
  constexpr std::string_view kWorked = "$`\\";
  std::string word;
  while (!rest.empty() && rest.front() != ';' && kBlanks.find(rest.front()) == std::string_view::npos) {
    const char first = rest.front();
    const bool quoted = first == '"' || first == '\'';
    const std::size_t end = quoted ? rest.find(first, 1) : 1;
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view piece = quoted ? rest.substr(1, end - 1) : rest.substr(0, 1);
    if (piece.find_first_of(kWorked) != std::string_view::npos) return std::nullopt;
    if (!quoted && std::string_view("&|<>()").find(first) != std::string_view::npos) return std::nullopt;
    word += piece;
    rest.remove_prefix(quoted ? end + 1 : 1);
  }
  return word;
}

}  // namespace

std::vector<Assignment> parse_exports(std::string_view text) {
  constexpr std::string_view kExport = "export ";
  std::vector<Assignment> exports;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(kExport)) continue;
    std::string_view rest = std::string_view(line).substr(kExport.size());
    for (;;) {
      rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
      if (rest.empty() || rest.front() == '#' || rest.front() == ';') break;
      const std::string_view name = rest.substr(0, rest.find_first_not_of(kNameLetters));
      const bool assigns = !name.empty() && rest.substr(name.size()).starts_with('=');
      const std::optional<std::string> word = take_plain_word(rest);
      // Also one that cannot be read takes the place of an earlier one.
      if (assigns) std::erase_if(exports, [&](const Assignment& earlier) { return earlier.name == name; });
      if (!word) break;
      if (assigns) exports.push_back({std::string(name), word->substr(name.size() + 1)});
    }
  }
  return exports;
}

std::string without_export(std::string_view name) {
  constexpr std::string_view kExport = "export ";
  return std::string(trim(name.starts_with(kExport) ? name.substr(kExport.size()) : name));
}

std::optional<std::string> find_assignment(const std::vector<Assignment>& assignments, std::string_view name) {
  std::optional<std::string> found;
  for (const Assignment& assignment : assignments) {
    if (assignment.name == name && !assignment.value.empty()) found = assignment.value;
  }
  return found;
}

std::string last_part(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

}  // namespace yoke::probe
