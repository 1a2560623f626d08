// Sizes as people give them to nccl-tests: a number, also with a fraction, and K, M or G for powers of 1024 in either
// case ("8", "1.5M", "16g"; a B or iB behind is taken too). Unlike base/units.h a bare number is a size here, since
// scripts written for nccl-tests say `-b 8 -e 128M`.
#pragma once
#include <string_view>

#include "yoke/base/result.h"
#include "yoke/base/units.h"

namespace yoke::bench {

// At most 4 EiB, a fraction of a byte dropped; anything else is an Error(kUsage) whose hint shows the form.
Result<Bytes> parse_size(std::string_view text);

}  // namespace yoke::bench
