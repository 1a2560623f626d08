#include "yoke/link/discover_lldp.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::link {
using namespace literals;

template <class Visitor>
void visit_fields(Visitor& visit, LldpNeighbour& neighbour) {
  visit.required("interface", neighbour.interface);
  visit.optional("system", neighbour.system);
  visit.optional("port_mac", neighbour.port_mac);
  visit.optional("port_name", neighbour.port_name);
  visit.required("bridge", neighbour.bridge);
}

namespace {

constexpr std::size_t kMaxText = 64;

[[noreturn]] void refuse(std::string_view what) {
  throw Error(ErrorCode::kInvalid, fmt::format("lldpcli: {} is not what it must be", what));
}

// In json0 everything is a list of maps, also what there is only one of.
const std::vector<Document>& list_at(const Document& map, std::string_view key) {
  static const std::vector<Document> kNone;
  if (map.kind != Document::Kind::kMap) refuse(key);
  const Document* found = map.find(key);
  if (!found) return kNone;
  if (found->kind != Document::Kind::kList) refuse(key);
  return found->items;
}

std::optional<std::string> text_at(const Document& map, std::string_view key) {
  if (map.kind != Document::Kind::kMap) refuse(key);
  const Document* found = map.find(key);
  if (!found) return std::nullopt;
  if (!is_text(*found)) refuse(key);
  return printable(found->text, kMaxText);
}

std::optional<std::string> value_of(const Document& map, std::string_view key) {
  for (const Document& entry : list_at(map, key)) return text_at(entry, "value");
  return std::nullopt;
}

LldpNeighbour read_neighbour(const Document& entry) {
  LldpNeighbour neighbour{.interface = text_at(entry, "name").value_or("")};
  if (neighbour.interface.empty()) refuse("an interface's name");
  for (const Document& chassis : list_at(entry, "chassis")) {
    neighbour.system = value_of(chassis, "name");
    for (const Document& capability : list_at(chassis, "capability")) {
      const Document* enabled = capability.find("enabled");
      neighbour.bridge |= text_at(capability, "type") == "Bridge" && enabled && from_json<bool>(*enabled);
    }
  }
  for (const Document& port : list_at(entry, "port")) {
    neighbour.port_name = value_of(port, "descr");
    for (const Document& id : list_at(port, "id")) {
      const bool is_mac = text_at(id, "type") == "mac";
      (is_mac ? neighbour.port_mac : neighbour.port_name) = text_at(id, "value");
    }
  }
  return neighbour;
}

}  // namespace

std::vector<LldpNeighbour> parse_lldp_neighbours(std::string_view json) {
  std::vector<LldpNeighbour> neighbours;
  const Document document = parse_json(json, "lldpcli");
  for (const Document& table : list_at(document, "lldp")) {
    for (const Document& entry : list_at(table, "interface")) neighbours.push_back(read_neighbour(entry));
  }
  return neighbours;
}

std::vector<LldpNeighbour> read_lldp_neighbours() {
  if (!is_installed("lldpcli")) return {};
  const auto neighbours = try_to([] {
    const Outcome outcome = run({.argv = {"lldpcli", "-f", "json0", "show", "neighbors"}, .timeout = 2_s});
    return outcome.ok() ? parse_lldp_neighbours(outcome.out) : std::vector<LldpNeighbour>{};
  });
  return neighbours.value_or(std::vector<LldpNeighbour>{});
}

Document to_json(const LldpNeighbour& neighbour) { return write_fields(neighbour); }
void from_json(const Document& document, LldpNeighbour& neighbour) { read_fields(document, neighbour); }

}  // namespace yoke::link
