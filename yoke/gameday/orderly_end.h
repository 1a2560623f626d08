// Ends a yoke command that is still running, as Ctrl-C at its terminal would: it then ends what it started on the nodes
// itself. A whole tree that is killed at once leaves that to `yoke lab down`, which takes seconds.
#pragma once
#include "yoke/base/process.h"

namespace yoke::gameday {

// Returns once the command has ended, after 2 s at the latest. The process must not have been waited for.
void end_orderly(const Process& process) noexcept;

}  // namespace yoke::gameday
