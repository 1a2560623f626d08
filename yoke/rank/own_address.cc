#include "yoke/rank/own_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/rank/world.h"

namespace yoke::rank {
namespace {

constexpr const char* kAddressVariable = "YOKE_ADDRESS";
// TEST-NET-1 of RFC 5737: nobody's address, so that only the default route leads there.
constexpr const char* kFarAway = "192.0.2.1";

// Groups whose members name their rails otherwise are refused, so all that have but one call it the same.
comm::DirectListener::Rails one_rail(std::string address) { return {{"network", std::move(address)}}; }

}  // namespace

std::vector<Ipv4> own_addresses() {
  std::vector<Ipv4> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    addresses.push_back(Ipv4{ntohl(address.sin_addr.s_addr)});
  }
  return addresses;
}

bool is_loopback(std::string_view address) { return address.starts_with("127."); }

// Connecting a datagram socket only asks the routes.
std::optional<std::string> source_address_towards(const std::string& destination) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(9);  // any: nothing is sent
  if (inet_pton(AF_INET, destination.c_str(), &there.sin_addr) != 1) return std::nullopt;
  const UniqueFd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || connect(probe.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) return std::nullopt;
  sockaddr_in here{};
  socklen_t size = sizeof here;
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0) return std::nullopt;
  return to_string(Ipv4{ntohl(here.sin_addr.s_addr)});
}

std::optional<std::string> default_address() {
  if (auto address = source_address_towards(kFarAway)) return address;
  for (const Ipv4 own : own_addresses()) {
    if (std::string address = to_string(own); !is_loopback(address)) return address;
  }
  return std::nullopt;
}

comm::DirectListener::Rails rails_here(const job::Environment& environment, const std::optional<spec::Cluster>& cluster,
                                       const std::string& towards_others) {
  if (const auto given = environment.find(kAddressVariable); given != environment.end()) {
    if (parse_ipv4(given->second)) return one_rail(given->second);
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} is '{}', which is no IPv4 address", kAddressVariable, printable(given->second, 40)),
                "set it to the address of this machine where the other ranks reach it, or unset it");
  }
  if (const spec::ClusterNode* node = cluster ? find_own_node(*cluster) : nullptr) {
    comm::DirectListener::Rails rails;
    for (std::size_t i = 0; i < node->rails.size(); ++i) {
      rails.emplace_back(std::string(1, static_cast<char>('A' + i)), to_string(node->rails[i].address.address));
    }
    return rails.empty() ? one_rail(node->address) : rails;
  }
  return towards_others.empty() ? comm::DirectListener::Rails{} : one_rail(towards_others);
}

}  // namespace yoke::rank
