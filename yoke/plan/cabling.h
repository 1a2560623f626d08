// Which cable goes from which port to which, with interface and subnet of every rail; and the drawing of it.
#pragma once
#include <string>
#include <vector>

#include "yoke/plan/machine.h"

namespace yoke::plan {

struct CableRail {
  std::string rail;  // "A", "B", …
  std::string from_interface;
  std::string to_interface;
  std::string subnet;
};

struct Cable {
  std::string from;  // "node-1"
  int from_port = 0;
  std::string to;  // "node-2", or "switch"
  int to_port = 0;
  std::vector<CableRail> rails;
};

struct Cabling {
  spec::Topology topology = spec::Topology::kDirect;
  std::string shape;  // "one cable", "ring (a full mesh)", …
  std::vector<Cable> cables;
  int cables_in_all = 0;  // of many nodes only the first are listed
  std::vector<spec::ApprovedCable> approved;
  std::vector<std::string> notes;
};

Cabling plan_cabling(const Machines& machines);
std::string draw_text(const Cabling& cabling, const Machines& machines);
std::string draw_svg(const Cabling& cabling, const Machines& machines);

}  // namespace yoke::plan
