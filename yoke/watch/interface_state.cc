#include "yoke/watch/interface_state.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

namespace yoke::watch {

InterfaceCalls::InterfaceCalls() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

void InterfaceCalls::read_state(RailSample& rail) const {
  ifreq answer{};
  std::strncpy(answer.ifr_name, rail.interface.c_str(), sizeof answer.ifr_name - 1);
  if (ioctl(socket_.get(), SIOCGIFFLAGS, &answer) != 0) return;
  rail.up = (answer.ifr_flags & IFF_UP) != 0;
  rail.carrier = rail.up && (answer.ifr_flags & IFF_RUNNING) != 0;
}

void InterfaceCalls::read_nic_counters(RailSample& rail) {
  const probe::NicCounters found = counters_.read(rail.interface);
  rail.pause_received = found.pause_received;
  rail.pause_sent = found.pause_sent;
  rail.discards_received = found.discards_received;
}

}  // namespace yoke::watch
