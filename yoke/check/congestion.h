// What the rules about the way through the switch share.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/spec/machine.h"

namespace yoke::check {

// Of a port by the kernel's name; 0 where it has not counted, as zeros are not kept.
std::int64_t counter_of(const spec::RdmaDevice& device, std::string_view name);
// What to type there.
std::string on_the_switch();

}  // namespace yoke::check
