// The command that lists labs, nodes and faults.
#pragma once
#include "yoke/cli/command.h"

namespace yoke {

CommandRow lab_status_command();

}  // namespace yoke
