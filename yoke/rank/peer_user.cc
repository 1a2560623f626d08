#include "yoke/rank/peer_user.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::rank {
namespace {

// "0100007F:1F90": the address as the bytes lie in memory, read as one number; the port as a number.
std::string as_in_table(const Endpoint& endpoint) {
  in_addr address{};
  if (inet_pton(AF_INET, endpoint.address.c_str(), &address) != 1) return {};
  return fmt::format("{:08X}:{:04X}", static_cast<std::uint32_t>(address.s_addr), endpoint.port);
}

Endpoint peer_endpoint(const Socket& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET) {
    return {};
  }
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return {text, ntohs(address.sin_port)};
}

}  // namespace

// "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …"
long user_of_connection(std::string_view table, const Endpoint& local, const Endpoint& remote) {
  constexpr std::string_view kEstablished = "01";
  const std::string from = as_in_table(local);
  const std::string to = as_in_table(remote);
  if (from.empty() || to.empty()) return -1;
  for (const std::string& line : split(table, '\n')) {
    std::vector<std::string> words;
    for (std::string& word : split(line, ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    if (words.size() < 10 || words[1] != from || words[2] != to || words[3] != kEstablished) continue;
    long user = -1;
    const auto [rest, failure] = std::from_chars(words[7].data(), words[7].data() + words[7].size(), user);
    const bool has_owner = words[9] != "0";  // none until its program has accepted it
    return failure == std::errc() && rest == words[7].data() + words[7].size() && has_owner ? user : -1;
  }
  return -1;
}

bool is_of_this_user(const Socket& socket) {
  const Endpoint peer = peer_endpoint(socket);
  if (peer.address.empty()) return false;
  // What the peer's end calls local is our peer.
  return user_of_connection(read_file("/proc/net/tcp"), peer, socket.local()) == static_cast<long>(geteuid());
}

}  // namespace yoke::rank
