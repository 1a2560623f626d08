#include "yoke/gameday/lab_fault.h"

#include "yoke/base/process.h"
#include "yoke/base/result.h"

namespace yoke {

LabFault::~LabFault() {
  if (!made_) return;
  const auto ignored = try_to([&] {
    return yoke::run({.argv = {venue_.options().program, "lab", "fault", "clear", "--name", *venue_.lab()}});
  });
}

void LabFault::make(const std::string& fault, const std::string& what) {
  made_ = true;  // before it is: a Ctrl-C may come between
  const Outcome made = scene_.run(
      {"lab", "fault", fault, "--name", *venue_.lab(), "--node", venue_.cluster().nodes.back().name, "--half", "B"});
  scene_.expect(made.ok(), what);
}

void LabFault::clear() {
  const Outcome cleared = scene_.run({"lab", "fault", "clear", "--name", *venue_.lab()});
  scene_.expect(cleared.ok(), "half B is whole again");
  made_ = !cleared.ok();
}

}  // namespace yoke
