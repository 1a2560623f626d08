#include "yoke/link/rdma_port.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "yoke/base/fields.h"

namespace yoke::link {

template <class Visitor>
void visit_fields(Visitor& visit, NamedCount& count) {
  visit.required("name", count.name);
  visit.required("value", count.value);
}

template <class Visitor>
void visit_fields(Visitor& visit, RdmaPort& port) {
  visit.required("device", port.device);
  visit.required("active", port.active);
  visit.optional("gid_index", port.gid_index);
  visit.optional("error_counts", port.error_counts);
}

namespace {

// What only grows where packets are damaged, lost or sent again; bytes and packets are left out.
constexpr std::array kErrorCounters = {
    "counters/symbol_error",          "counters/port_rcv_errors",         "counters/port_xmit_discards",
    "counters/link_downed",           "counters/link_error_recovery",     "counters/local_link_integrity_errors",
    "hw_counters/out_of_sequence",    "hw_counters/packet_seq_err",       "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",  "hw_counters/rx_icrc_encapsulated", "hw_counters/roce_adp_retrans",
    "hw_counters/implied_nak_seq_err"};

std::string port_folder(const std::string& device) { return fmt::format("/sys/class/infiniband/{}/ports/1", device); }

// "0000:0000:0000:0000:0000:ffff:c0a8:6401", as sysfs prints an IPv4 address that is mapped into a GID.
std::string mapped_gid(Ipv4 address) {
  return fmt::format("0000:0000:0000:0000:0000:ffff:{:04x}:{:04x}", address.value >> 16U, address.value & 0xffffU);
}

bool belongs_to(const FileTree& tree, const std::string& device, const std::string& interface) {
  if (tree.read_trimmed(port_folder(device) + "/gid_attrs/ndevs/0") == interface) return true;
  for (const std::string& name : tree.list(fmt::format("/sys/class/infiniband/{}/device/net", device))) {
    if (name == interface) return true;
  }
  return false;
}

std::optional<int> find_gid(const FileTree& tree, const std::string& device, const std::string& interface,
                            Ipv4 address) {
  const std::string folder = port_folder(device);
  for (const std::string& slot : tree.list(folder + "/gids")) {
    int index = 0;
    const auto [end, failure] = std::from_chars(slot.data(), slot.data() + slot.size(), index);
    if (failure != std::errc{} || end != slot.data() + slot.size()) continue;
    if (tree.read_trimmed(folder + "/gids/" + slot) == mapped_gid(address) &&
        tree.read_trimmed(folder + "/gid_attrs/types/" + slot) == "RoCE v2" &&
        tree.read_trimmed(folder + "/gid_attrs/ndevs/" + slot) == interface) {
      return index;
    }
  }
  return std::nullopt;
}

std::vector<NamedCount> read_error_counts(const FileTree& tree, const std::string& device) {
  std::vector<NamedCount> counts;
  for (const std::string name : kErrorCounters) {
    const auto text = tree.read_trimmed(port_folder(device) + "/" + name);
    std::int64_t value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) continue;
    counts.push_back({name.substr(name.find('/') + 1), value});
  }
  return counts;
}

}  // namespace

std::optional<RdmaPort> find_rdma_port(const FileTree& tree, const std::string& interface, Ipv4 address) {
  for (const std::string& device : tree.list("/sys/class/infiniband")) {
    if (!belongs_to(tree, device, interface)) continue;
    const auto state = tree.read_trimmed(port_folder(device) + "/state");
    return RdmaPort{.device = device,
                    .active = state && state->find("ACTIVE") != std::string::npos,
                    .gid_index = find_gid(tree, device, interface, address),
                    .error_counts = read_error_counts(tree, device)};
  }
  return std::nullopt;
}

Document to_json(const RdmaPort& port) { return write_fields(port); }
void from_json(const Document& document, RdmaPort& port) { read_fields(document, port); }

}  // namespace yoke::link
