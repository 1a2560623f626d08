#include "yoke/comm/direct/node_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace yoke::comm::direct {
namespace {

constexpr std::size_t kMaxDescriptors = 2;  // a bell, and from the lowest rank the region

void send_descriptors(const Socket& socket, std::vector<int> descriptors) {
  char byte = 'd';
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  if (sendmsg(socket.fd(), &message, MSG_NOSIGNAL) != 1) {
    throw system_error(errno, fmt::format("cannot hand shared memory to {}", socket.peer()));
  }
}

std::vector<UniqueFd> receive_descriptors(const Socket& socket, const std::string& from, Deadline deadline) {
  pollfd wait{socket.fd(), POLLIN, 0};
  while (poll(&wait, 1, deadline.poll_timeout_ms()) <= 0) {
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("waited too long for the shared memory of {}", from));
    }
  }
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  std::vector<UniqueFd> descriptors;
  const ssize_t count = recvmsg(socket.fd(), &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* header = count > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  if (count <= 0 || descriptors.empty()) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{} is gone: it left while the group was made", from));
  }
  return descriptors;
}

UniqueFd duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw system_error(errno, "cannot duplicate a descriptor");
  return copy;
}

}  // namespace

int NodeMemory::place_of(int rank) const { return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin()); }

NodeMemory share_memory(const Health& health, const std::vector<PeerConnections>& peers, Deadline deadline) {
  NodeMemory memory;
  for (int rank = 0; rank < health.size(); ++rank) {
    if (health.is_local(rank)) memory.ranks.push_back(rank);
  }
  if (memory.ranks.size() == 1) return memory;
  const int count = static_cast<int>(memory.ranks.size());
  const bool lowest = memory.ranks.front() == health.rank();
  if (lowest) memory.region = std::make_unique<Region>(Region::create(count));
  const auto socket_of = [&](int rank) -> const Socket& { return peers[static_cast<std::size_t>(rank)].memory; };
  for (const int rank : memory.ranks) {
    if (rank == health.rank()) continue;
    std::vector<int> descriptors = {health.caller_wakeup.fd()};
    if (lowest) descriptors.push_back(memory.region->file());
    send_descriptors(socket_of(rank), std::move(descriptors));
  }
  for (const int rank : memory.ranks) {
    if (rank == health.rank()) {
      memory.wakeups.emplace_back(duplicate(health.caller_wakeup.fd()));
      continue;
    }
    std::vector<UniqueFd> got = receive_descriptors(socket_of(rank), health.name(rank), deadline);
    memory.wakeups.emplace_back(std::move(got.front()));
    if (rank != memory.ranks.front()) continue;
    if (got.size() < 2) throw Error(ErrorCode::kInvalid, fmt::format("{} sent no shared memory", health.name(rank)));
    memory.region = std::make_unique<Region>(Region::adopt(std::move(got[1]), count));
  }
  return memory;
}

}  // namespace yoke::comm::direct
