#include "yoke/link/interfaces.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/link/ip_json.h"

namespace yoke::link {
using namespace literals;

template <class Visitor>
void visit_fields(Visitor& visit, LinkCounters& counters) {
  visit.required("rx_bytes", counters.rx_bytes);
  visit.required("tx_bytes", counters.tx_bytes);
  visit.required("rx_errors", counters.rx_errors);
  visit.required("tx_errors", counters.tx_errors);
  visit.required("rx_dropped", counters.rx_dropped);
  visit.required("tx_dropped", counters.tx_dropped);
}

template <class Visitor>
void visit_fields(Visitor& visit, LinkInterface& interface) {
  visit.required("name", interface.name);
  visit.required("mtu", interface.mtu);
  visit.required("up", interface.up);
  visit.required("carrier", interface.carrier);
  visit.optional("ipv4", interface.ipv4);
  visit.optional("ipv6", interface.ipv6);
  visit.required("counters", interface.counters);
}

namespace {

constexpr std::string_view kSource = "ip -json";

std::int64_t count_at(const Document* map, std::string_view key) { return map ? ip_value<std::int64_t>(*map, key) : 0; }

LinkInterface read_entry(const Document& entry) {
  LinkInterface interface {
    .name = ip_value<std::string>(entry, "ifname"), .mtu = static_cast<int>(count_at(&entry, "mtu"))
  };
  if (const Document* flags = entry.find("flags")) {
    const auto names = from_json<std::vector<std::string>>(*flags);
    interface.up = std::find(names.begin(), names.end(), "UP") != names.end();
    interface.carrier = std::find(names.begin(), names.end(), "LOWER_UP") != names.end();
  }
  if (const Document* addresses = entry.find("addr_info")) {
    for (const Document& address : addresses->items) {
      const std::string text =
          fmt::format("{}/{}", ip_value<std::string>(address, "local"), count_at(&address, "prefixlen"));
      (ip_value<std::string>(address, "family") == "inet" ? interface.ipv4 : interface.ipv6).push_back(text);
    }
  }
  if (const Document* stats = entry.find("stats64")) {
    const Document* rx = stats->find("rx");
    const Document* tx = stats->find("tx");
    interface.counters = {.rx_bytes = count_at(rx, "bytes"),
                          .tx_bytes = count_at(tx, "bytes"),
                          .rx_errors = count_at(rx, "errors"),
                          .tx_errors = count_at(tx, "errors"),
                          .rx_dropped = count_at(rx, "dropped"),
                          .tx_dropped = count_at(tx, "dropped")};
  }
  return interface;
}

Document list_of(std::string_view json) {
  Document document = parse_json(json, kSource);
  if (document.kind != Document::Kind::kList) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: this must be a list", kSource));
  }
  return document;
}

}  // namespace

std::vector<LinkInterface> parse_link_interfaces(std::string_view json) {
  std::vector<LinkInterface> interfaces;
  for (const Document& entry : list_of(json).items) {
    LinkInterface interface = read_entry(entry);
    // Interfaces that were filtered out leave empty objects behind.
    if (!interface.name.empty()) interfaces.push_back(std::move(interface));
  }
  return interfaces;
}

std::optional<std::string> parse_route_interface(std::string_view json) {
  const Document document = list_of(json);
  if (document.items.empty()) return std::nullopt;
  const std::string device = ip_value<std::string>(document.items.front(), "dev");
  return device.empty() ? std::nullopt : std::optional(device);
}

std::vector<LinkInterface> read_link_interfaces() {
  return parse_link_interfaces(run_or_throw({.argv = {"ip", "-json", "-s", "address", "show"}, .timeout = 10_s}).out);
}

const LinkInterface* find_link_interface(const std::vector<LinkInterface>& interfaces, std::string_view name) {
  const auto found =
      std::find_if(interfaces.begin(), interfaces.end(), [&](const LinkInterface& i) { return i.name == name; });
  return found == interfaces.end() ? nullptr : &*found;
}

std::optional<std::string> read_route_interface(const std::string& to, const std::string& from) {
  // An address that is not ours, or no route, is an exit status: an answer.
  const Outcome outcome = run({.argv = {"ip", "-json", "route", "get", to, "from", from}, .timeout = 10_s});
  return outcome.ok() ? parse_route_interface(outcome.out) : std::nullopt;
}

Document to_json(const LinkInterface& interface) { return write_fields(interface); }
void from_json(const Document& document, LinkInterface& interface) { read_fields(document, interface); }

}  // namespace yoke::link
