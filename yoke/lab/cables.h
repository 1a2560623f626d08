// Who is cabled to whom in a lab, with the subnet and the addresses of each rail, and the routes of a ring or mesh.
#pragma once
#include "yoke/lab/layout.h"

namespace yoke::lab {

// Of a layout that has its nodes and their interfaces, for so many ports of each node.
void lay_cables(LabLayout& layout, int ports);

}  // namespace yoke::lab
