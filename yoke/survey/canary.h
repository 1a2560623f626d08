// A canary: a short measurement of the machine itself, which shows a machine that has become slow though its clocks,
// its temperatures and its logs look as always.
#pragma once
#include "yoke/spec/survey.h"

namespace yoke::survey {

// Reads 256 MiB with all cores that we may use, a few times: about a third of a second. Without `read` where so little
// memory is left that even this could do harm.
spec::MemoryCanary measure_canary();

}  // namespace yoke::survey
