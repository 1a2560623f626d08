// Sends beacons on some interfaces and listens for those of others, for a while. Needs the right to raw sockets
// (CAP_NET_RAW); changes nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/link/beacon.h"

namespace yoke::link {

struct HeardBeacon {
  std::string interface;  // ours, on which it came
  Beacon beacon;
  friend bool operator==(const HeardBeacon&, const HeardBeacon&) = default;
};

// `own` names the interfaces and says what to send on each. Each beacon that is heard is answered once per interface,
// and told to `on_heard` as it comes. An interface that is down or goes is passed over. Throws Error(kPermission)
// without the right to raw sockets.
std::vector<HeardBeacon> exchange_beacons(const std::vector<Beacon>& own, Seconds time,
                                          const std::function<void(const HeardBeacon&)>& on_heard = {});

}  // namespace yoke::link
