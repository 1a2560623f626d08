// What the commands of yoke bench share: a run goes to the history, and whatever is in its way is only a warning.
#pragma once
#include "yoke/bench/run_record.h"

namespace yoke {

void keep(const RunRecord& record);

}  // namespace yoke
