// What the kernel counted on the connection of a rail.
#pragma once
#include "yoke/base/socket.h"
#include "yoke/spec/step_account.h"

namespace yoke::comm::direct {

// Fills bytes, times, segments and both addresses. What an older kernel does not count stays 0.
void count_rail_use(const Socket& socket, spec::RailUse& use);

}  // namespace yoke::comm::direct
