// A fault of one rail at the lab's last node: made when a phase wants it, and ended with this, also where the phase
// breaks off.
//
//   LabFault fault(environment, scene, "B");
//   fault.make("rail-down", "rail B is cut");
//   fault.clear();
#pragma once
#include <string>

#include "yoke/gameday/environment.h"
#include "yoke/gameday/phase_run.h"

namespace yoke::gameday {

class LabFault {
 public:
  LabFault(const Environment& environment, PhaseRun& phase_run, std::string rail)
      : environment_(environment), phase_run_(phase_run), rail_(std::move(rail)) {}
  LabFault(const LabFault&) = delete;
  LabFault& operator=(const LabFault&) = delete;
  ~LabFault();

  void make(const std::string& fault, const std::string& what);  // expects `what` of it
  void clear();                                                  // expects the rail to be whole again

 private:
  const Environment& environment_;
  PhaseRun& phase_run_;
  std::string rail_;
  bool made_ = false;
};

}  // namespace yoke::gameday
