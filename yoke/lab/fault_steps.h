// How each fault is made: looks at the node's network as it is, and answers what to run and how to undo it.
#pragma once
#include <string>
#include <string_view>

#include "yoke/lab/faults.h"

namespace yoke::lab {

struct FaultSteps {
  std::vector<ActiveFault::Undo> run;
  std::vector<ActiveFault::Undo> undo;
  std::vector<std::string> devices;
};

FaultSteps plan_fault(const LabLayout& layout, std::string_view name, const LabNode& node, const std::string& rail);

// Runs the steps in order, each in its node's network.
void run_steps(const LabLayout& layout, const std::vector<ActiveFault::Undo>& steps);

// The same for the steps of an undo, some or all of which may have nothing to do any more: yoke may have been killed
// before the fault was made, or while it was cleared. Takes every step; then throws the first error there was.
void undo_steps(const LabLayout& layout, const std::vector<ActiveFault::Undo>& steps);

}  // namespace yoke::lab
