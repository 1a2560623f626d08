#include "yoke/lab/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/lab/fault_steps.h"
#include "yoke/lab/hardware_faults.h"
#include "yoke/lab/lab.h"
#include "yoke/lab/network.h"
#include "yoke/lab/node_access.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
namespace {

using Scope = FaultRow::Scope;

constexpr Seconds kSettleLimit{5};

constexpr std::array kFaults = {
    FaultRow{"cable-pulled", "both rails of the node's cables lose their carrier", Scope::kNode},
    FaultRow{"rail-down", "one rail is down, the other works", Scope::kHalf},
    FaultRow{"rail-unaddressed", "one rail has lost its address", Scope::kHalf},
    FaultRow{"mtu-mismatch", "MTU 1500 at this end, 9000 at the other", Scope::kHalf},
    FaultRow{"same-subnet", "both rails in one /24", Scope::kNode},
    FaultRow{"slow-rail", "an eighth of the rate, all else healthy", Scope::kHalf},
    FaultRow{"gid-drift", "the RoCE v2 IPv4 entry has moved in the GID table", Scope::kHalf},
    FaultRow{"narrow-pcie", "PCIe x2 instead of x4", Scope::kHalf},
    FaultRow{"management-only", "the peers' fast addresses are routed over the management port", Scope::kNode},
    FaultRow{"port-speed-100", "the ports have come up at 100 Gb/s", Scope::kNode},
    FaultRow{"firewall", "data ports are dropped on the fast interfaces", Scope::kNode},
    FaultRow{"clock-skew", "the clocks differ (Linux cannot do this for a virtual node)", Scope::kNode},
    FaultRow{"power-off", "the node is dead", Scope::kNode},
    FaultRow{"power-on", "the node is started again", Scope::kNode},
};

fs::path faults_file(const std::string& lab) { return lab_folder(lab) / "faults.json"; }

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, ActiveFault::Undo& undo) {
  visit.required("node", undo.node);
  visit.required("tool", undo.tool);
  visit.required("line", undo.line);
}

template <class Visitor>
void visit_fields(Visitor& visit, ActiveFault& fault) {
  visit.required("name", fault.name);
  visit.required("node", fault.node);
  visit.required("rail", fault.rail);
  visit.optional("undo", fault.undo);
  visit.optional("devices", fault.devices);
}

namespace {

void save_faults(const std::string& lab, const std::vector<ActiveFault>& faults) {
  write_file_atomically(faults_file(lab), print_json(to_document(faults)) + "\n");
}

// The node's watcher reads this file: {"gid_drift": ["rocep1s0f0"], …}.
void show_hardware_faults(const LabLayout& layout, const LabNode& node, const std::vector<ActiveFault>& faults) {
  if (layout.plain || !find_part(layout.name, node.number)) return;  // shown when it is powered on
  Document shown = Document::map();
  for (const auto& [fault_name, key] : {std::pair{"gid-drift", "gid_drift"}, std::pair{"narrow-pcie", "narrow_pcie"},
                                        std::pair{"port-speed-100", "port_speed_100"}}) {
    Document devices = Document::list();
    for (const ActiveFault& fault : faults) {
      if (fault.node != node.number || fault.name != fault_name) continue;
      for (const std::string& device : fault.devices) devices.items.push_back(Document::string(device));
    }
    shown.add(key, std::move(devices));
  }
  NodeAccess(layout.name, node).write(kHardwareFaultsPath, print_json(shown) + "\n");
}

// The faults of the hardware tree are shown to the new node, cut cables stay cut.
void power_on_with_faults(const LabLayout& layout, const LabNode& node, const LabLock& lock) {
  const std::vector<ActiveFault> faults = active_faults(layout.name);
  std::vector<std::string> cut;
  for (const ActiveFault& fault : faults) {
    for (const ActiveFault::Undo& undo : fault.undo) {
      if (undo.node == node.number && undo.line.starts_with("link set ") && undo.line.ends_with(" up"))
        cut.push_back(undo.line);
    }
  }
  power_on(layout, node, cut, lock);
  if (!layout.plain) wait_for_links(layout, Deadline::after(kSettleLimit));
  show_hardware_faults(layout, node, faults);
}

const FaultRow& find_fault(std::string_view name) {
  std::vector<std::string> names;
  for (const FaultRow& row : kFaults) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  throw Error(ErrorCode::kUsage, fmt::format("there is no fault '{}'", printable(name, 40)),
              suggest(name, names, "faults"));
}

}  // namespace

std::span<const FaultRow> fault_table() { return kFaults; }

std::vector<ActiveFault> active_faults(const std::string& lab) {
  const fs::path file = faults_file(lab);
  if (!fs::exists(file)) return {};
  return from_json<std::vector<ActiveFault>>(parse_json(read_file(file), file.native()));
}

void apply_fault(const LabLayout& layout, std::string_view name, const LabNode& node, const std::string& rail) {
  const FaultRow& row = find_fault(name);
  const LabLock lock(layout.name);
  if (name == "power-on") return power_on_with_faults(layout, node, lock);
  ActiveFault fault{.name = std::string(name), .node = node.number, .rail = row.scope == Scope::kHalf ? rail : ""};
  std::vector<ActiveFault> faults = active_faults(layout.name);
  const bool in_force = std::any_of(faults.begin(), faults.end(), [&](const ActiveFault& other) {
    return other.name == fault.name && other.node == fault.node && other.rail == fault.rail;
  });
  if (in_force) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is in force on {} already", name, node.name),
                "'yoke lab fault clear' ends all faults");
  }
  if (name == "power-off") {
    power_off(layout, node);
    return;
  }
  FaultSteps steps = plan_fault(layout, name, node, fault.rail);
  fault.undo = steps.undo;
  fault.devices = steps.devices;
  faults.push_back(fault);
  save_faults(layout.name, faults);  // before the change: what is half done can be undone
  try {
    run_steps(layout, steps.run);
    if (!steps.devices.empty()) show_hardware_faults(layout, node, faults);
  } catch (const Error&) {
    // Half of a fault is none. What cannot be undone now stays listed, for `clear`.
    if (try_to([&] { undo_steps(layout, steps.undo); })) {
      faults.pop_back();
      save_faults(layout.name, faults);
    }
    throw;
  }
}

std::size_t clear_faults(const LabLayout& layout) {
  const LabLock lock(layout.name);
  std::size_t cleared = 0;
  std::vector<std::string> failures;
  const auto attempt = [&](const std::string& what, const auto& function) {
    const auto done = try_to(function);
    if (done) ++cleared;
    if (!done) failures.push_back(fmt::format("{}: {}", what, done.error().message()));
    return done.has_value();
  };
  for (const LabNode& node : layout.nodes) {
    if (find_part(layout.name, node.number)) continue;
    attempt("power-off on " + node.name, [&] { power_on_with_faults(layout, node, lock); });
  }
  std::vector<ActiveFault> faults = active_faults(layout.name);
  for (std::size_t i = faults.size(); i-- > 0;) {
    throw_if_interrupted();
    const ActiveFault fault = faults[i];
    const LabNode& node = layout.nodes.at(static_cast<std::size_t>(fault.node - 1));
    std::vector<ActiveFault> others = faults;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const bool done = attempt(fmt::format("{} on {}", fault.name, node.name), [&] {
      undo_steps(layout, fault.undo);
      if (!fault.devices.empty()) show_hardware_faults(layout, node, others);
    });
    if (!done) continue;
    faults = std::move(others);
    save_faults(layout.name, faults);
  }
  if (!layout.plain) wait_for_links(layout, Deadline::after(kSettleLimit));
  if (!failures.empty()) {
    throw Error(ErrorCode::kUnavailable, fmt::format("not cleared: {}", fmt::join(failures, "; ")),
                fmt::format("all other faults are cleared; try again, or 'yoke lab down --name {}'", layout.name));
  }
  return cleared;
}

}  // namespace yoke::lab
