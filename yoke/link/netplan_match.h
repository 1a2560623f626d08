// Which definitions of a node's netplan files reach a rail under another name than its own: by `match`. netplan takes
// both, and whichever its backend sorts first then decides. Pure; the YAML is netplan's, and valid by its own word.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::link {

struct NetplanFile {
  std::string path;
  Document content;
};

// What netplan can match an interface by. Empty where it is not known.
struct NetplanTarget {
  std::string name, mac, driver;
};

struct NetplanClash {
  std::string file, id, interface;
  friend bool operator==(const NetplanClash&, const NetplanClash&) = default;
};

// The first definition that reaches a rail by another id; or that has a rail's id, but is made for another interface,
// to which then everything would go that we write for the rail.
std::optional<NetplanClash> find_netplan_clash(const std::vector<NetplanFile>& files,
                                               const std::vector<NetplanTarget>& rails);

// The name, MAC and driver of an interface of this machine.
NetplanTarget read_netplan_target(const std::string& interface);

}  // namespace yoke::link
