#include "yoke/job/supervisor.h"

#include <fmt/format.h>

#include "yoke/job/process_watch.h"
#include "yoke/job/supervisor_loop.h"

namespace yoke {
using namespace literals;

std::optional<int> run_job_part(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "node") return std::nullopt;
  try {
    if (arguments.size() == 3 && arguments[1] == "clean") {
      end_marked_processes(fmt::format("{}={}", kJobMarkVariable, arguments[2]), 1_s);
      return 0;
    }
    if (arguments.size() == 1) return SupervisorLoop().run();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "yoke: {}\n", failure.what());
    return 1;
  }
  return std::nullopt;
}

}  // namespace yoke
