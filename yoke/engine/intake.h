// What the client sent since the last step, on its way to the scheduler. Rank 0 only.
#pragma once
#include "yoke/base/units.h"
#include "yoke/engine/client_connection.h"
#include "yoke/engine/scheduler.h"

namespace yoke::engine {

// Waits so long for a first message. Returns whether one asks for an account of the steps.
bool take_messages(ClientConnection& client, Scheduler& scheduler, Seconds wait);

}  // namespace yoke::engine
