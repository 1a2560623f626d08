// What a machine is, from its sources: runs every collector. Absent is a value; a file that is there and makes no sense
// is an Error kInvalid that names it.
#pragma once
#include "yoke/probe/sources.h"
#include "yoke/spec/machine.h"

namespace yoke::probe {

spec::Machine probe_machine(const Sources& sources);

}  // namespace yoke::probe
