#include "yoke/probe/cpu_list.h"

#include <fmt/format.h>

#include <charconv>
#include <climits>
#include <cstdint>

#include "yoke/base/text.h"

namespace yoke::probe {
namespace {

constexpr int kMaxNumbers = 1 << 20;  // no machine has more processors; a capture may claim anything

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || rest != text.data() + text.size() || value < 0 || value > kMaxNumbers) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int> count_of_list(std::string_view list) {
  int count = 0;
  list = trim(list);
  if (list.empty()) return 0;
  for (const std::string& part : split(list, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = number_of(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos ? first : number_of(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last < *first || count > kMaxNumbers) return std::nullopt;
    count += *last - *first + 1;
  }
  return count;
}

std::string print_cpu_list(std::span<const unsigned long> mask) {
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  const auto is_set = [&](std::size_t bit) { return (mask[bit / kBits] >> (bit % kBits) & 1UL) != 0; };
  std::string list;
  const std::size_t end = mask.size() * kBits;
  for (std::size_t first = 0; first < end; ++first) {
    if (!is_set(first)) continue;
    std::size_t last = first;
    while (last + 1 < end && is_set(last + 1)) ++last;
    list += fmt::format("{}{}", list.empty() ? "" : ",", first);
    if (last > first) list += fmt::format("-{}", last);
    first = last;
  }
  return list;
}

}  // namespace yoke::probe
