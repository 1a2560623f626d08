#include "yoke/gameday/lab_fault.h"

#include <fmt/format.h>

#include "yoke/base/process.h"
#include "yoke/base/result.h"

namespace yoke::gameday {

LabFault::~LabFault() {
  if (!made_) return;
  const auto ignored = try_to([&] {
    return yoke::run(
        {.argv = {environment_.options().program, "lab", "fault", "clear", "--name", *environment_.lab()}});
  });
}

void LabFault::make(const std::string& fault, const std::string& what) {
  made_ = true;  // before it is: a Ctrl-C may come between
  const Outcome made = phase_run_.run({"lab", "fault", fault, "--name", *environment_.lab(), "--node",
                                       environment_.cluster().nodes.back().name, "--rail", rail_});
  phase_run_.expect(made.ok(), what);
}

void LabFault::clear() {
  const Outcome cleared = phase_run_.run({"lab", "fault", "clear", "--name", *environment_.lab()});
  phase_run_.expect(cleared.ok(), fmt::format("rail {} is whole again", rail_));
  made_ = !cleared.ok();
}

}  // namespace yoke::gameday
