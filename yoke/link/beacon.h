// A beacon: the frame by which a node tells over a cable who it is, before anything has an address. EtherType 0x88B5
// (IEEE's for local experiments), broadcast, so that every other end of a cable or switch hears it. It only proposes:
// anyone on the cable can send one, so nothing is done with it but to ask ssh, whose host keys decide.
//
// The payload: the 8 bytes "YOKEBCN1", the length of the rest (2 bytes, big end first), then JSON on one line. What
// follows is padding, which Ethernet needs for short frames. Anything that differs is refused as kInvalid; NVIDIA's
// own cluster script uses the same EtherType, and its frames are none of ours.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"
#include "yoke/base/ip.h"

namespace yoke::link {

inline constexpr std::uint16_t kBeaconEtherType = 0x88B5;

struct Beacon {
  std::string node;  // 32 hex digits that are this machine's alone (node_identity)
  std::string hostname;
  std::string interface;
  std::string mac;              // "4c:bb:47:00:00:01"
  int port = 0;                 // of the machine
  std::string rail;             // "A", "B"
  std::string version;          // of yoke
  std::optional<Ipv4> address;  // where ssh may reach the node: a proposal
  friend bool operator==(const Beacon&, const Beacon&) = default;
};

std::string encode_beacon(const Beacon& beacon);  // the payload of a frame
Beacon parse_beacon(std::string_view payload);    // throws Error(kInvalid)
Document to_json(const Beacon& beacon);
void from_json(const Document& document, Beacon& beacon);  // as strict as parse_beacon

}  // namespace yoke::link
