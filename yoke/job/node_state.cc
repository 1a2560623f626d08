#include "yoke/job/node_state.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::job {
namespace {

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc{} && value >= 0 ? std::optional(value) : std::nullopt;
}

// "MemAvailable:   1234 kB" of /proc/meminfo, in bytes.
std::optional<std::int64_t> memory_line(const std::vector<std::string>& lines, std::string_view key) {
  for (const std::string& line : lines) {
    if (!line.starts_with(key)) continue;
    const auto value = number_in(trim(std::string_view(line).substr(key.size())));
    return value && *value < (std::int64_t{1} << 50) ? std::optional(*value * 1024) : std::nullopt;
  }
  return std::nullopt;
}

// Asked of the kernel in the calling thread's network namespace, which files below /sys need not follow.
bool has_carrier(const std::string& interface) {
  const UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq asked{};
  std::strncpy(asked.ifr_name, interface.c_str(), sizeof asked.ifr_name - 1);
  if (!any || ioctl(any.get(), SIOCGIFFLAGS, &asked) != 0) return false;
  return (asked.ifr_flags & IFF_UP) != 0 && (asked.ifr_flags & IFF_RUNNING) != 0;
}

// The NICs count RDMA apart from the kernel's traffic, in words of four bytes (InfiniBand Architecture Specification,
// PortXmitData).
std::optional<std::int64_t> counted(const FileTree& machine, const std::string& interface, const char* of_network,
                                    const char* of_port) {
  const std::string folder = "/sys/class/net/" + interface;
  const auto read = [&](const std::string& path) { return number_in(machine.read_trimmed(path).value_or("")); };
  std::optional<std::int64_t> sum = read(fmt::format("{}/statistics/{}", folder, of_network));
  for (const std::string& device : machine.list(folder + "/device/infiniband")) {
    const auto words = read(fmt::format("/sys/class/infiniband/{}/ports/1/counters/{}", device, of_port));
    if (words && *words < (std::int64_t{1} << 60)) sum = sum.value_or(0) + *words * 4;
  }
  return sum;
}

}  // namespace

NodeState read_node_state(const FileTree& machine, const std::vector<std::string>& interfaces) {
  const auto lines = split(machine.read("/proc/meminfo").value_or(""), '\n');
  NodeState state{.time = std::chrono::duration<double>(real_clock().now().time_since_epoch()).count(),
                  .memory_bytes = memory_line(lines, "MemTotal:"),
                  .memory_available_bytes = memory_line(lines, "MemAvailable:")};
  for (const std::string& name : interfaces) {
    state.interfaces.push_back({.name = name,
                                .is_up = has_carrier(name),
                                .sent_bytes = counted(machine, name, "tx_bytes", "port_xmit_data"),
                                .received_bytes = counted(machine, name, "rx_bytes", "port_rcv_data")});
  }
  return state;
}

}  // namespace yoke::job
