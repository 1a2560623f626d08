#include "yoke/watch/node_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::watch {
namespace {

constexpr std::size_t kMaxLiveFile = 1 << 20;
constexpr std::size_t kMaxItems = 64;       // interfaces, disks: a machine with more shows the first
constexpr std::int64_t kSectorBytes = 512;  // of /proc/diskstats, whatever the disk has

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

template <class Function>
void each_line(std::string_view text, Function function) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    function(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || rest != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number_in(const FileTree& files, const std::string& path) {
  const auto text = files.read_trimmed(path);
  return text ? number_of(*text) : std::nullopt;
}

void read_pressure(const FileTree& files, MemorySample& memory) {
  const auto text = files.read("/proc/pressure/memory");
  if (!text) return;
  each_line(*text, [&](std::string_view line) {
    const std::size_t at = line.find("total=");
    if (at == std::string_view::npos) return;
    const auto total = number_of(trim(line.substr(at + 6)));
    if (line.starts_with("some")) memory.pressure_some_us = total;
    if (line.starts_with("full")) memory.pressure_full_us = total;
  });
}

// Disks, not their partitions, and none that live in memory.
bool is_whole_disk(std::string_view name) {
  const bool ends_in_digit = !name.empty() && name.back() >= '0' && name.back() <= '9';
  if (name.starts_with("nvme") || name.starts_with("mmcblk")) return name.find('p') == std::string_view::npos;
  return (name.starts_with("sd") || name.starts_with("vd") || name.starts_with("xvd")) && !ends_in_digit;
}

}  // namespace

std::optional<std::string> LiveTree::read(std::string_view path) const {
  const UniqueFd file(open(std::string(path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string content;
  std::array<char, 8192> buffer;
  while (content.size() < kMaxLiveFile) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0) return std::nullopt;  // how drivers say that an attribute has no value now
    if (count == 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return content;
}

void read_cpu(const FileTree& files, CpuSample& cpu) {
  if (const auto text = files.read("/proc/stat")) {
    each_line(*text, [&](std::string_view line) {
      if (line.starts_with("cpu") && line.size() > 3 && line[3] != ' ') ++cpu.cores;
      if (!line.starts_with("cpu ")) return;
      // user nice system idle iowait irq softirq steal; guest times are part of user's
      const auto words = words_of(line);
      for (std::size_t i = 1; i < std::min<std::size_t>(words.size(), 9); ++i) {
        const std::int64_t ticks = number_of(words[i]).value_or(0);
        cpu.total += ticks;
        if (i != 4 && i != 5) cpu.busy += ticks;
      }
    });
  }
  if (const auto load = files.read("/proc/loadavg")) {
    double value = 0;
    const auto [_, failure] = std::from_chars(load->data(), load->data() + load->size(), value);
    if (failure == std::errc{} && std::isfinite(value)) cpu.load = value;
  }
}

void read_memory(const FileTree& files, MemorySample& memory) {
  if (const auto text = files.read("/proc/meminfo")) {
    each_line(*text, [&](std::string_view line) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) return;
      const auto words = words_of(line.substr(colon + 1));
      const auto value = words.empty() ? std::nullopt : number_of(words[0]);
      if (!value || *value > (std::int64_t{1} << 50)) return;
      const Bytes size{*value * 1024};
      const std::string_view name = line.substr(0, colon);
      if (name == "MemTotal") memory.total = size;
      if (name == "MemAvailable") memory.available = size;
      if (name == "SwapTotal") memory.swap_total = size;
      if (name == "SwapFree") memory.swap_free = size;
    });
  }
  read_pressure(files, memory);
}

std::vector<DiskSample> read_disks(const FileTree& files) {
  std::vector<DiskSample> disks;
  const auto text = files.read("/proc/diskstats");
  if (!text) return disks;
  each_line(*text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 10 || !is_whole_disk(words[2]) || disks.size() >= kMaxItems) return;
    const auto read = number_of(words[5]);
    const auto written = number_of(words[9]);
    if (!read || !written || *read > (std::int64_t{1} << 53) || *written > (std::int64_t{1} << 53)) return;
    disks.push_back(
        {.name = std::string(words[2]), .read_bytes = *read * kSectorBytes, .written_bytes = *written * kSectorBytes});
  });
  return disks;
}

Total read_tcp_retransmits(const FileTree& files) {
  const auto text = files.read("/proc/net/snmp");
  if (!text) return std::nullopt;
  std::vector<std::string_view> names;
  Total found;
  each_line(*text, [&](std::string_view line) {
    if (!line.starts_with("Tcp:")) return;
    const auto words = words_of(line);
    for (std::size_t i = 0; i < std::min(words.size(), names.size()); ++i) {
      if (names[i] == "RetransSegs") found = number_of(words[i]);
    }
    names = words;
  });
  return found;
}

std::vector<RailSample> read_interface_counters(const FileTree& files) {
  std::vector<RailSample> interfaces;
  const auto text = files.read("/proc/net/dev");
  if (!text) return interfaces;
  each_line(*text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || interfaces.size() >= kMaxItems) return;
    const std::string_view name = trim(line.substr(0, colon));
    const auto words = words_of(line.substr(colon + 1));
    if (name.empty() || name == "lo" || words.size() < 16) return;
    RailSample rail;
    rail.interface = printable(name, 32);
    rail.rx_bytes = number_of(words[0]);
    rail.rx_errors = number_of(words[2]);
    rail.rx_dropped = number_of(words[3]);
    rail.tx_bytes = number_of(words[8]);
    rail.tx_errors = number_of(words[10]);
    rail.tx_dropped = number_of(words[11]);
    interfaces.push_back(std::move(rail));
  });
  return interfaces;
}

void read_rdma_port(const FileTree& files, const RailPlace& place, RailSample& rail) {
  if (!place.rdma_device) return;
  const std::string port = fmt::format("/sys/class/infiniband/{}/ports/1", *place.rdma_device);
  rail.rdma_device = place.rdma_device;
  if (const auto state = files.read_trimmed(port + "/state")) {
    rail.rdma_state = printable(trim(std::string_view(*state).substr(state->find(':') + 1)), 40);  // "4: ACTIVE"
  }
  if (const auto speed = files.read_trimmed(port + "/rate")) {  // "200 Gb/sec (4X HDR)"
    if (const auto words = words_of(*speed); words.size() > 1 && words[1] == "Gb/sec") {
      if (const auto gigabits = number_of(words[0]))
        rail.rdma_rate = BitsPerSecond{static_cast<double>(*gigabits) * 1e9};
    }
  }
  // Data is counted in words of four bytes (InfiniBand Architecture Specification, PortXmitData).
  const auto bytes = [&](const char* name) -> Total {
    const auto words = number_in(files, port + "/counters/" + name);
    return words && *words < (std::int64_t{1} << 60) ? Total(*words * 4) : std::nullopt;
  };
  const auto total = [&](const char* folder, std::initializer_list<const char*> names) {
    Total sum;
    for (const char* name : names) {
      const auto value = number_in(files, fmt::format("{}/{}/{}", port, folder, name));
      if (value) sum = sum.value_or(0) + *value;
    }
    return sum;
  };
  rail.rdma_rx_bytes = bytes("port_rcv_data");
  rail.rdma_tx_bytes = bytes("port_xmit_data");
  rail.rdma_errors = total("counters", {"port_rcv_errors", "symbol_error", "local_link_integrity_errors",
                                        "link_error_recovery", "port_rcv_remote_physical_errors"});
  rail.rdma_discards = total("counters", {"port_xmit_discards"});
  rail.rdma_retransmits = total("hw_counters", {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err"});
  rail.link_downed = total("counters", {"link_downed"});
}

namespace {

struct PortCounter {
  const char* file;
  Total RailSample::*value;
};
// linux/Documentation/ABI/stable/sysfs-class-infiniband; hw_counters are those of NVIDIA's NICs.
constexpr PortCounter kPortCounters[] = {
    {"counters/port_rcv_errors", &RailSample::receive_errors},
    {"counters/port_rcv_discards", &RailSample::receive_discards},
    {"counters/link_error_recovery", &RailSample::link_recoveries},
    {"counters/port_xmit_wait", &RailSample::transmit_waits},
    {"hw_counters/out_of_sequence", &RailSample::out_of_sequence},
    {"hw_counters/packet_seq_err", &RailSample::sequence_errors},
    {"hw_counters/local_ack_timeout_err", &RailSample::ack_timeouts},
    {"hw_counters/duplicate_request", &RailSample::duplicate_requests},
    {"hw_counters/implied_nak_seq_err", &RailSample::implied_naks},
};

}  // namespace

void read_rdma_counters(const FileTree& files, const RailPlace& place, RailSample& rail) {
  if (!place.rdma_device) return;
  const std::string port = fmt::format("/sys/class/infiniband/{}/ports/1/", *place.rdma_device);
  for (const PortCounter& counter : kPortCounters) rail.*counter.value = number_in(files, port + counter.file);
  const auto state = files.read_trimmed(port + "phys_state");  // "5: LinkUp"
  if (!state) return;
  const auto number = number_of(std::string_view(*state).substr(0, state->find(':')));
  if (number && *number <= 7) rail.rdma_physical_state = static_cast<int>(*number);
}

void copy_rdma_counters(const RailSample& from, RailSample& to) {
  for (const PortCounter& counter : kPortCounters) to.*counter.value = from.*counter.value;
  to.rdma_physical_state = from.rdma_physical_state;
}

void read_pcie_width(const FileTree& files, const RailPlace& place, RailSample& rail) {
  if (!place.pci_address) return;
  const std::string device = "/sys/bus/pci/devices/" + *place.pci_address;
  const auto width = [&](const char* name) -> std::optional<int> {
    const auto value = number_in(files, device + name);
    return value && *value <= 64 ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  rail.pcie_width = width("/current_link_width");
  rail.pcie_width_max = width("/max_link_width");
}

SensorFiles::SensorFiles(const FileTree& files) {
  for (const std::string& device : files.list("/sys/class/hwmon")) {
    const std::string folder = "/sys/class/hwmon/" + device;
    const std::string chip = printable(files.read_trimmed(folder + "/name").value_or(device), 40);
    for (const std::string& file : files.list(folder)) {
      const bool is_power = file.starts_with("power") && (file.ends_with("_input") || file.ends_with("_average"));
      if (!is_power && !(file.starts_with("temp") && file.ends_with("_input"))) continue;
      const std::string stem = file.substr(0, file.rfind('_'));
      std::string name = printable(files.read_trimmed(folder + "/" + stem + "_label").value_or(stem), 40);
      if (places_.size() < kMaxItems) {
        places_.push_back({.path = folder + "/" + file, .chip = chip, .name = std::move(name), .is_power = is_power});
      }
    }
  }
}

std::vector<SensorSample> SensorFiles::read(const FileTree& files) const {
  std::vector<SensorSample> sensors;
  for (const Place& place : places_) {
    const auto value = number_in(files, place.path);
    if (!value) continue;
    SensorSample sensor;
    sensor.chip = place.chip;
    sensor.name = place.name;
    if (place.is_power) {
      sensor.watts = static_cast<double>(*value) / 1e6;
    } else {
      sensor.celsius = static_cast<double>(*value) / 1e3;
    }
    sensors.push_back(std::move(sensor));
  }
  return sensors;
}

}  // namespace yoke::watch
