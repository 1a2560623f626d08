// What lldpd on a node knows of its neighbours, where it runs: a switch's name, and which port is at the other end.
// Read through `lldpcli -f json0`, whose form does not depend on how many neighbours there are (that of json does).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::link {

struct LldpNeighbour {
  std::string interface;                // ours
  std::optional<std::string> system;    // the neighbour's name
  std::optional<std::string> port_mac;  // of the port at the other end, where it tells that
  std::optional<std::string> port_name;
  bool bridge = false;  // it forwards frames: a switch
  friend bool operator==(const LldpNeighbour&, const LldpNeighbour&) = default;
};

// What `lldpcli -f json0 show neighbors` printed. Throws Error(kInvalid) for anything else. Texts are made printable: a
// neighbour can send what it likes.
std::vector<LldpNeighbour> parse_lldp_neighbours(std::string_view json);

// Of this machine; none where lldpd is not installed, does not run, or may not be asked.
std::vector<LldpNeighbour> read_lldp_neighbours();

Document to_json(const LldpNeighbour& neighbour);
void from_json(const Document& document, LldpNeighbour& neighbour);

}  // namespace yoke::link
