// Lists of numbers as the kernel writes them: "0-63,128-191".
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace yoke::probe {

// How many numbers a list holds; nothing for what is no such list.
std::optional<int> count_of_list(std::string_view list);

// A bit mask as a list, bit 0 of the first word being number 0.
std::string print_cpu_list(std::span<const unsigned long> mask);

}  // namespace yoke::probe
