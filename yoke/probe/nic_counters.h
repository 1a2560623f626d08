// What a NIC counts of pause frames and of packets that it discards on arrival. Pause frames come by netlink: those of
// priorities by DCB (flow_control.h), those of the whole link by ethtool's netlink family. For discards the kernel has
// no common name, so they are asked by the ioctl of `ethtool -S`. In the network namespace of the calling thread.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "yoke/base/files.h"
#include "yoke/base/netlink.h"
#include "yoke/probe/link_table.h"

namespace yoke::probe {

// Since the driver started. Absent is what a NIC does not count, as an interface without a cable (a veth) does not.
struct NicCounters {
  std::optional<std::int64_t> pause_received, pause_sent;  // frames
  std::optional<std::int64_t> discards_received;           // packets for which the NIC had no buffer
  friend bool operator==(const NicCounters&, const NicCounters&) = default;
};

// Pause frames in the attributes of an answer to ETHTOOL_MSG_PAUSE_GET.
NicCounters parse_pause_statistics(NetlinkData attributes);
// The place of the discards among the names of `ethtool -S`, of ETH_GSTRING_LEN bytes each.
std::optional<std::size_t> find_discards(std::span<const char> names);

class NicCounterReader {
 public:
  NicCounterReader();
  // Costs a NIC of hundreds of counters about a millisecond.
  NicCounters read(const std::string& interface);

 private:
  struct DiscardPlace {
    std::size_t statistics = 0;  // how many the NIC has; 0: none that we know
    std::size_t place = 0;
  };
  NicCounters ask_pause_statistics(const std::string& interface);
  const DiscardPlace& place_of(const std::string& interface);
  std::optional<std::int64_t> ask_discards(const std::string& interface);

  UniqueFd dcb_, generic_, any_;
  std::uint16_t ethtool_family_ = 0;  // 0: a kernel before 5.6
  std::uint32_t asked_ = 1;           // questions to generic_: their numbers
  std::map<std::string, DiscardPlace> places_;
};

// Fills the counters of those entries whose driver counts.
void read_nic_counters(LinkTable& table);

}  // namespace yoke::probe
