#include "yoke/lab/hardware_changes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/lab/hardware_functions.h"

namespace yoke::lab {
namespace {

namespace fs = std::filesystem;

// What a port reports, by the type of its adapter: captured for MT4129, inferred for MT4131 and for a port that is
// down (tests/fixtures/README.md). Only the type is the same whatever the port does, so that it can be asked.
struct AdapterRate {
  std::string_view hca_type, rate;
};
constexpr AdapterRate kAdapterRates[] = {
    {"MT4129", "200 Gb/sec (4X HDR)"},  // ConnectX-7 in a Spark
    {"MT4131", "800 Gb/sec (4X XDR)"},  // ConnectX-8
};
constexpr std::string_view kRateDown = "40 Gb/sec (4X QDR)";
constexpr std::string_view kRate100 = "100 Gb/sec (4X EDR)";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A missing interface is one that is down.
InterfaceState state_of(const std::string& name, const std::vector<InterfaceState>& interfaces) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const InterfaceState& state) { return state.name == name; });
  return found == interfaces.end() ? InterfaceState{} : *found;
}

std::optional<unsigned> parse_number(std::string_view text) {
  unsigned value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

class ChangeList {
 public:
  explicit ChangeList(const FileTree& tree) : tree_(tree) {}

  void want(std::string path, std::string_view line) {
    std::string content = std::string(line) + "\n";
    if (tree_.read(path) != content) changes_.push_back({std::move(path), std::move(content)});
  }
  void want_where_present(std::string path, std::string_view line) {
    if (tree_.read(path)) want(std::move(path), line);
  }
  void want_absent(std::string path) {
    if (tree_.read(path)) changes_.push_back({std::move(path), std::nullopt});
  }
  const FileTree& tree() const { return tree_; }
  std::vector<FileChange> take() { return std::move(changes_); }

 private:
  const FileTree& tree_;
  std::vector<FileChange> changes_;
};

void change_state(ChangeList& changes, const RdmaFunction& function, const InterfaceState& interface,
                  const HardwareFaults& faults) {
  const std::string port = function.rdma_folder() + "/ports/1";
  const bool has_link = interface.up && interface.carrier;
  changes.want(port + "/state", has_link ? "4: ACTIVE" : "1: DOWN");
  changes.want(port + "/phys_state", has_link ? "5: LinkUp" : "3: Disabled");
  if (!has_link) {
    changes.want(port + "/rate", kRateDown);
  } else if (contains(faults.port_speed_100, function.device)) {
    changes.want(port + "/rate", kRate100);
  } else {
    const std::optional<std::string> type = changes.tree().read_trimmed(function.rdma_folder() + "/hca_type");
    for (const AdapterRate& adapter : kAdapterRates) {
      if (type == adapter.hca_type) changes.want(port + "/rate", adapter.rate);
    }
  }
}

GidTable read_gid_table(const FileTree& tree, const std::string& port) {
  GidTable table;
  for (const std::string& name : tree.list(port + "/gids")) {
    const std::optional<unsigned> slot = parse_number(name);
    if (!slot || *slot >= kMaxGidSlots) continue;
    if (table.size() <= *slot) table.resize(*slot + 1);
    const auto gid = parse_gid(tree.read_trimmed(port + "/gids/" + name).value_or(""));
    if (!gid || gid->empty()) continue;
    const auto type = tree.read_trimmed(port + "/gid_attrs/types/" + name);
    table[*slot] = {*gid, type == to_string(RoceVersion::kV2) ? RoceVersion::kV2 : RoceVersion::kV1};
  }
  return table;
}

void change_gids(ChangeList& changes, const RdmaFunction& function, const InterfaceState& interface,
                 const HardwareFaults& faults) {
  const std::string port = function.rdma_folder() + "/ports/1";
  const GidTable table =
      next_gid_table(read_gid_table(changes.tree(), port), {.mac = interface.mac,
                                                            .ipv4 = interface.ipv4,
                                                            .ipv6 = interface.ipv6,
                                                            .drift = contains(faults.gid_drift, function.device)});
  for (std::size_t slot = 0; slot < table.size(); ++slot) {
    const auto path = [&](std::string_view what) { return fmt::format("{}/{}/{}", port, what, slot); };
    const bool is_empty = table[slot].gid.empty();
    if (is_empty) changes.want(path("gids"), to_string(Gid{}));
    if (is_empty) changes.want_absent(path("gid_attrs/types"));
    if (is_empty) changes.want_absent(path("gid_attrs/ndevs"));
    if (!is_empty) changes.want(path("gid_attrs/types"), to_string(table[slot].version));
    if (!is_empty) changes.want(path("gid_attrs/ndevs"), function.interface);
    if (!is_empty) changes.want(path("gids"), to_string(table[slot].gid));
  }
}

// Data is counted in words of four bytes (InfiniBand Architecture Specification, PortXmitData). On an adapter this is
// RDMA traffic only; here TCP stands for it.
void change_counters(ChangeList& changes, const RdmaFunction& function, const InterfaceState& interface) {
  if (!interface.counters) return;
  const InterfaceCounters& counted = *interface.counters;
  const std::string folder = function.rdma_folder() + "/ports/1/counters/";
  const auto change = [&](std::string_view name, std::uint64_t value) {
    changes.want_where_present(folder + std::string(name), fmt::format("{}", value));
  };
  change("port_rcv_data", counted.rx_bytes / 4);
  change("port_xmit_data", counted.tx_bytes / 4);
  change("port_rcv_packets", counted.rx_packets);
  change("port_xmit_packets", counted.tx_packets);
  change("port_rcv_errors", counted.rx_errors);
  change("port_xmit_discards", counted.tx_dropped);
}

// A link of the lab's machines is at its full width unless it is made narrow: that is how it comes back.
void change_widths(ChangeList& changes, const std::map<std::string, std::string>& neighbours,
                   const HardwareFaults& faults) {
  for (const auto& [address, folder] : neighbours) {
    const auto most = parse_number(changes.tree().read_trimmed(folder + "/max_link_width").value_or(""));
    if (!most) continue;
    const unsigned width = contains(faults.narrow_pcie, address) ? std::max(1U, *most / 2) : *most;
    changes.want_where_present(folder + "/current_link_width", fmt::format("{}", width));
  }
}

}  // namespace

std::vector<FileChange> hardware_changes(const FileTree& tree, const std::vector<InterfaceState>& interfaces,
                                         const HardwareFaults& faults) {
  ChangeList changes(tree);
  const std::vector<RdmaFunction> functions = find_rdma_functions(tree);
  for (const RdmaFunction& function : functions) {
    InterfaceState interface = state_of(function.interface, interfaces);
    const std::string address = function.net_folder() + "/address";
    if (interface.mac) {
      changes.want(address, to_string(*interface.mac));
    } else {
      interface.mac = parse_mac(tree.read_trimmed(address).value_or(""));
    }
    change_gids(changes, function, interface, faults);
    change_state(changes, function, interface, faults);
    change_counters(changes, function, interface);
  }
  change_widths(changes, find_pci_neighbours(tree, functions), faults);
  return changes.take();
}

std::vector<FileChange> counter_changes(const FileTree& tree, const std::vector<InterfaceState>& interfaces) {
  ChangeList changes(tree);
  for (const RdmaFunction& function : find_rdma_functions(tree)) {
    change_counters(changes, function, state_of(function.interface, interfaces));
  }
  return changes.take();
}

void apply_changes(const std::vector<FileChange>& changes, MemoryTree& tree) {
  for (const FileChange& change : changes) {
    if (change.content) {
      tree.add_file(change.path, *change.content);
    } else {
      tree.remove(change.path);
    }
  }
}

void apply_changes(const std::vector<FileChange>& changes, const fs::path& root) {
  for (const FileChange& change : changes) {
    const fs::path file = root / fs::path(change.path).relative_path();
    if (change.content) {
      write_in_place(file, *change.content);
    } else if (unlink(file.c_str()) != 0 && errno != ENOENT) {
      throw system_error(errno, fmt::format("cannot remove {}", file.native()));
    }
  }
}

void write_in_place(const fs::path& file, std::string_view content) {
  const UniqueFd fd = open_file(file, O_WRONLY | O_CREAT);
  write_all(fd, content, file);
  if (ftruncate(fd.get(), static_cast<off_t>(content.size())) != 0) {
    throw system_error(errno, fmt::format("cannot write {}", file.native()));
  }
}

}  // namespace yoke::lab
