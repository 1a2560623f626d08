// What the rules about servers share. Pure.
#pragma once
#include "yoke/check/cluster_view.h"

namespace yoke::check {

// The catalogue's row of a server whose GPUs are joined by NVLink; null for all other machines.
const spec::Hardware* server_of(const spec::Machine& machine);

// Whether we are in a container or a scheduler's job, which may have been given some of the machine's GPUs: what is
// not shown is not missing.
bool is_given_a_part(const spec::Machine& machine);

}  // namespace yoke::check
