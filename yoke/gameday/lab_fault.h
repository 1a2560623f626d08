// A fault of half B at the lab's last node: made when a phase wants it, and ended with this, also where the phase
// breaks off.
//
//   LabFault fault(venue, scene);
//   fault.make("half-down", "half B is cut");
//   fault.clear();
#pragma once
#include <string>

#include "yoke/gameday/scene.h"
#include "yoke/gameday/venue.h"

namespace yoke {

class LabFault {
 public:
  LabFault(const Venue& venue, Scene& scene) : venue_(venue), scene_(scene) {}
  LabFault(const LabFault&) = delete;
  LabFault& operator=(const LabFault&) = delete;
  ~LabFault();

  void make(const std::string& fault, const std::string& what);  // expects `what` of it
  void clear();                                                  // expects the half to be whole again

 private:
  const Venue& venue_;
  Scene& scene_;
  bool made_ = false;
};

}  // namespace yoke
