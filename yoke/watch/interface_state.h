// What only the kernel's calls tell of a network interface: up, carrier, and what its NIC counts of pause frames and
// discards. In the network namespace of the calling thread, which files below /sys do not follow.
#pragma once
#include "yoke/base/files.h"
#include "yoke/probe/nic_counters.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

class InterfaceCalls {
 public:
  InterfaceCalls();
  void read_state(RailSample& rail) const;
  // Costs a NIC of hundreds of counters about a millisecond: not for every sample.
  void read_nic_counters(RailSample& rail);

 private:
  UniqueFd socket_;
  probe::NicCounterReader counters_;
};

}  // namespace yoke::watch
