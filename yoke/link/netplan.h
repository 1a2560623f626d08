// Our netplan file: rendered here, validated by netplan itself on a copy, and beyond that for what netplan lets pass.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/spec/cluster.h"

namespace yoke::link {

inline constexpr const char* kNetplanFile = "/etc/netplan/60-yoke.yaml";

struct NetplanRoute {
  std::string to, via;
};

struct NetplanInterface {
  std::string name;
  Ipv4Prefix address;
  std::vector<NetplanRoute> routes;
};

// Throws Error(kInvalid) for what netplan would take without a word: an absurd MTU, an interface or an address twice,
// two interfaces in one subnet.
std::string render_netplan(const std::vector<NetplanInterface>& interfaces, int mtu);

// Asks `netplan generate` about a copy of /etc/netplan with this content in it, and then whether another file of the
// node adds to or overrules what ours says. Throws Error(kInvalid, kConflict).
void validate_netplan(const std::string& content, const std::filesystem::path& file);

// netplan is there, and systemd runs to carry out what it says.
bool netplan_applies();

}  // namespace yoke::link
