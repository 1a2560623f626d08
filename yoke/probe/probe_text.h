// A machine's facts for people: one screen.
#pragma once
#include <string>

#include "yoke/spec/machine.h"

namespace yoke::probe {

std::string machine_text(const spec::Machine& machine);

// "10x Cortex-X925 …, 114.3 GiB available": parts of the above that a table of nodes shows too.
std::string memory_text(const spec::Memory& memory);
std::string gpus_text(const spec::Machine& machine);
std::string links_text(const spec::Machine& machine);  // "2 of 4 fast interfaces up"

}  // namespace yoke::probe
