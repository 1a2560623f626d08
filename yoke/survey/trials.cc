#include "yoke/survey/trials.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <set>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"
#include "yoke/probe/route_query.h"

namespace yoke::survey {
namespace {

using namespace literals;

constexpr int kHeaders = 28;  // of IPv4 and ICMP
// A port that nobody serves: a machine that lets connections through refuses it, a firewall swallows it.
constexpr std::uint16_t kUnservedPort = 29499;

// A lost packet is no closed way: each trial has several attempts, far longer than any answer of a neighbour takes.
constexpr int kPings = 2;
constexpr int kConnections = 3;
constexpr const char* kPingWait = "0.5";
constexpr Seconds kConnectionWait{0.4};
constexpr int kInterruptLookMs = 50;

bool ping(Ipv4 to, const std::vector<std::string>& options) {
  std::vector<std::string> words = {"ping", "-n", "-q", "-c", "1", "-W", kPingWait};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(to_string(to));
  for (int i = 0; i < kPings; ++i) {
    if (run({.argv = words, .timeout = 3_s}).ok()) return true;
  }
  return false;
}

// Nothing where this machine does not even try, as without the right to choose the interface.
std::optional<bool> connects_once(Ipv4 to, const std::string& device) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return std::nullopt;
  const auto length = static_cast<socklen_t>(device.size());
  if (!device.empty() && setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.data(), length) != 0) {
    return std::nullopt;
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof on);  // without it a rejection looks like a refusal
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kUnservedPort);
  address.sin_addr.s_addr = htonl(to.value);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  if (errno == ECONNREFUSED) return true;
  if (errno != EINPROGRESS) return std::nullopt;
  const Deadline deadline = Deadline::after(kConnectionWait);
  pollfd waiting{fd.get(), POLLOUT, 0};
  int ready = 0;
  do {
    throw_if_interrupted();  // the signal may have come to another thread, whose waits it ends
    ready = poll(&waiting, 1, std::min(deadline.poll_timeout_ms(), kInterruptLookMs));
  } while (ready <= 0 && !deadline.expired());
  if (ready <= 0) return false;
  const bool by_icmp = came_by_icmp(fd);
  int failure = 0;
  socklen_t size = sizeof failure;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0) return std::nullopt;
  return failure == 0 || (failure == ECONNREFUSED && !by_icmp);
}

std::optional<bool> connects_at_last(Ipv4 to, const std::string& device) {
  std::optional<bool> answered = false;
  for (int i = 0; i < kConnections && answered == false; ++i) answered = connects_once(to, device);
  return answered;
}

std::optional<Ipv4> own_address(const spec::PathProbe& path, const spec::Machine& machine) {
  const spec::NetworkInterface* interface = spec::find_interface(machine, path.interface);
  if (!interface) return std::nullopt;
  for (const Ipv4Prefix& own : interface->addresses) {
    if (own.contains(path.peer_address)) return own.address;
  }
  return std::nullopt;
}

}  // namespace

bool came_by_icmp(const UniqueFd& fd) {
  char control[512];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level != IPPROTO_IP || part->cmsg_type != IP_RECVERR) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(part), sizeof error);
    return error.ee_origin == SO_EE_ORIGIN_ICMP;
  }
  return false;
}

void try_path(spec::PathProbe& path) {
  const bool can_ping = is_installed("ping") && path.large_size > kHeaders;
  const std::vector<std::string> here = {"-I", path.interface};
  const std::vector<std::string> whole = {"-I", path.interface, "-M",
                                          "do", "-s",           std::to_string(path.large_size - kHeaders)};
  auto large = std::async(std::launch::async, [&] { return can_ping && ping(path.peer_address, whole); });
  auto connected = std::async(std::launch::async, [&] { return connects_at_last(path.peer_address, path.interface); });
  if (can_ping) path.small = ping(path.peer_address, here);
  const bool large_passed = large.get();
  if (can_ping) path.large = large_passed;
  path.connects = connected.get();
}

void try_far(spec::RingProbe& far) {
  far.routes = probe::ask_route(far.address, std::nullopt);
  far.routed = !far.routes.empty();
  // Either answer will do: a node may drop pings, or connections, of everybody, which is another's finding or nobody's.
  // The connection first: where all is well it costs no process.
  far.reached = connects_at_last(far.address, "") == true || (is_installed("ping") && ping(far.address, {}));
}

std::vector<std::string> read_ring_settings(const FileTree& files, const std::vector<spec::PathProbe>& paths) {
  std::set<std::string> found;
  const auto value_of = [&](const std::string& interface, const char* setting) {
    const auto text = files.read_trimmed(fmt::format("/proc/sys/net/ipv4/conf/{}/{}", interface, setting));
    return text ? *text : "";
  };
  const std::string for_all = value_of("all", "rp_filter");
  for (const spec::PathProbe& path : paths) {
    const auto add = [&](const char* setting, const std::string& value) {
      found.insert(fmt::format("net.ipv4.conf.{}.{} = {}", path.interface, setting, value));
    };
    if (value_of(path.interface, "forwarding") == "0") add("forwarding", "0");
    // The larger of the two counts, and 1 is strict: 2 accepts what comes by any interface.
    const std::string filter = std::max(value_of(path.interface, "rp_filter"), for_all);
    if (filter == "1") add("rp_filter", "1");
  }
  return {found.begin(), found.end()};
}

void ask_routes(spec::PathProbe& path, const spec::Machine& machine) {
  path.routes = probe::ask_route(path.peer_address, std::nullopt);
  if (const auto own = own_address(path, machine); own && !path.routes.empty()) {
    const std::vector<std::string> answering = probe::ask_route(path.peer_address, *own);
    if (answering.empty()) path.routes.clear();
    for (const std::string& name : answering) {
      if (std::find(path.routes.begin(), path.routes.end(), name) == path.routes.end()) path.routes.push_back(name);
    }
  }
  path.routed = !path.routes.empty();
}

}  // namespace yoke::survey
