// Small words of the command line: counts of tokens, sizes of images.
#pragma once
#include <string_view>
#include <utility>

namespace yoke::plan {

// "4096", "128k" (of 1024), "15B", "1T". `what` names the option in errors. Error(kUsage) unless it is from 1 to 1e16.
double parse_count(std::string_view text, std::string_view what);

// "1024x1024", or "1024" for a square; each side a multiple of 16 from 64 to 16384.
std::pair<double, double> parse_image_size(std::string_view text);

}  // namespace yoke::plan
