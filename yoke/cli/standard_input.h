// Texts that come through standard input.
#pragma once
#include <string>

#include "yoke/base/units.h"

namespace yoke {

// All of standard input, to its end. More than `most` of it is refused.
std::string read_standard_input(Bytes most);

}  // namespace yoke
