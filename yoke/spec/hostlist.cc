#include "yoke/spec/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"

namespace yoke::spec {
namespace {

constexpr std::size_t kMaxHosts = limits::kHosts;  // "[0-999999999]" is a mistake
constexpr std::size_t kMaxDigits = 9;

[[noreturn]] void refuse_hostlist(std::string_view list, const std::string& why) {
  throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no list of hosts: {}", printable(list, 80), why),
              "such as b300-[1-8] or b300-[01-08,12],login");
}

std::uint32_t number_in(std::string_view digits, std::string_view list) {
  std::uint32_t value = 0;
  const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = failure == std::errc{} && rest == digits.data() + digits.size() && !digits.empty();
  if (!whole || digits.size() > kMaxDigits)
    refuse_hostlist(list, fmt::format("'{}' is no number", printable(digits, 20)));
  return value;
}

// "1-4,7" to the numbers as they are written.
std::vector<std::string> numbers_of(std::string_view ranges, std::string_view list) {
  std::vector<std::string> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
    const std::uint32_t begin = number_in(first, list), end = number_in(last, list);
    if (end < begin) refuse_hostlist(list, fmt::format("{} comes after {}", begin, end));
    if (end - begin >= kMaxHosts - numbers.size()) refuse_hostlist(list, fmt::format("more than {} hosts", kMaxHosts));
    for (std::uint32_t number = begin; number <= end; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
    }
  }
  return numbers;
}

// One entry of the list, without commas outside brackets.
std::vector<std::string> expand_entry(std::string_view entry, std::string_view list) {
  const std::size_t open = entry.find('[');
  if (open == std::string_view::npos) {
    if (entry.find(']') != std::string_view::npos) refuse_hostlist(list, "a ']' without '['");
    return {std::string(entry)};
  }
  const std::size_t close = entry.find(']', open);
  if (close == std::string_view::npos) refuse_hostlist(list, "a '[' without ']'");
  const std::vector<std::string> rest = expand_entry(entry.substr(close + 1), list);
  const std::vector<std::string> numbers = numbers_of(entry.substr(open + 1, close - open - 1), list);
  if (numbers.size() * rest.size() > kMaxHosts) refuse_hostlist(list, fmt::format("more than {} hosts", kMaxHosts));
  std::vector<std::string> names;
  for (const std::string& number : numbers) {
    for (const std::string& end : rest) {
      names.push_back(std::string(entry.substr(0, open)) + number + end);
      if (names.back().size() > limits::kHostBytes)
        refuse_hostlist(list, fmt::format("a name of {} bytes", names.back().size()));
    }
  }
  return names;
}

}  // namespace

bool is_hostlist(std::string_view text) { return text.find_first_of("[,") != std::string_view::npos; }

std::vector<std::string> expand_hostlist(std::string_view list) {
  if (list.size() > limits::kHostlistBytes)
    refuse_hostlist(list, fmt::format("more than {} bytes", limits::kHostlistBytes));
  std::vector<std::string> names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']') --depth;
    if (depth < 0 || depth > 1) refuse_hostlist(list, "the brackets do not match");
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    const std::string_view entry = trim(list.substr(begin, at - begin));
    if (entry.empty()) refuse_hostlist(list, "a name is missing");
    if (std::count(entry.begin(), entry.end(), '[') > static_cast<std::ptrdiff_t>(limits::kHostlistRanges)) {
      refuse_hostlist(list, fmt::format("more than {} brackets in one name", limits::kHostlistRanges));
    }
    const std::vector<std::string> more = expand_entry(entry, list);
    if (names.size() + more.size() > kMaxHosts) refuse_hostlist(list, fmt::format("more than {} hosts", kMaxHosts));
    names.insert(names.end(), more.begin(), more.end());
    begin = at + 1;
  }
  return names;
}

}  // namespace yoke::spec
