#include "yoke/job/node_answer.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/ip.h"

namespace yoke::job {
namespace {

struct Attempt {
  std::string where;
  sockaddr_in address{};
  bool loopback = false;
  UniqueFd fd = {};
};

// Numbers as they are; names as the system knows them, which may take its time but is asked in a thread of its own.
std::optional<in_addr> resolve(const std::string& name) {
  in_addr address{};
  if (inet_pton(AF_INET, name.c_str(), &address) == 1) return address;
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0 || !list) return std::nullopt;
  address = reinterpret_cast<const sockaddr_in*>(list->ai_addr)->sin_addr;
  freeaddrinfo(list);
  return address;
}

std::optional<Attempt> begin(std::string where, const std::string& name, int port) {
  const auto resolved = resolve(name);
  if (!resolved) return std::nullopt;
  Attempt attempt{.where = std::move(where)};
  attempt.address.sin_family = AF_INET;
  attempt.address.sin_port = htons(static_cast<std::uint16_t>(port == 0 ? 22 : port));
  attempt.address.sin_addr = *resolved;
  attempt.loopback = (ntohl(resolved->s_addr) >> 24U) == 127;
  attempt.fd = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!attempt.fd) return std::nullopt;
  connect(attempt.fd.get(), reinterpret_cast<const sockaddr*>(&attempt.address), sizeof attempt.address);
  return attempt;
}

bool answered(const Attempt& attempt) {
  int failure = 0;
  socklen_t size = sizeof failure;
  getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  return failure == 0 || (failure == ECONNREFUSED && !attempt.loopback);
}

}  // namespace

std::string rail_name(std::size_t index) { return std::string(1, static_cast<char>('A' + index % 26)); }

NodeAnswer ask_node(const spec::ClusterNode& node, Deadline deadline) {
  std::vector<Attempt> attempts;
  std::vector<std::string> tried;
  const auto add = [&](std::string where, const std::string& address) {
    tried.push_back(where);
    if (auto attempt = begin(std::move(where), address, node.port)) attempts.push_back(*std::move(attempt));
  };
  add("at " + node.address, node.address);
  for (std::size_t i = 0; i < node.rails.size(); ++i) {
    add("on rail " + rail_name(i), yoke::to_string(node.rails[i].address.address));
  }
  while (!attempts.empty() && !deadline.expired()) {
    std::vector<pollfd> fds;
    for (const Attempt& attempt : attempts) fds.push_back({attempt.fd.get(), POLLOUT, 0});
    poll(fds.data(), fds.size(), deadline.poll_timeout_ms());
    std::vector<Attempt> open;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (fds[i].revents == 0) {
        open.push_back(std::move(attempts[i]));
      } else if (answered(attempts[i])) {
        return {true, attempts[i].where};
      }
    }
    attempts = std::move(open);
  }
  return {false, fmt::format("{}", fmt::join(tried, ", "))};
}

}  // namespace yoke::job
