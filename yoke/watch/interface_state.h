// What only the kernel's calls tell of a network interface: up, carrier, and the pause frames that its NIC counts. In
// the network namespace of the calling thread, which files below /sys do not follow.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

class InterfaceCalls {
 public:
  InterfaceCalls();
  void read_state(RailSample& rail) const;
  // Costs a NIC of hundreds of counters about a millisecond: not for every sample.
  void read_pauses(RailSample& rail);

 private:
  struct PausePlaces {
    std::size_t statistics = 0;  // how many the NIC has
    std::vector<std::size_t> received, sent;
  };
  const PausePlaces& places_of(const std::string& interface);

  UniqueFd socket_;
  std::map<std::string, PausePlaces> places_;
};

}  // namespace yoke::watch
