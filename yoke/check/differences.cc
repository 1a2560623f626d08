#include "yoke/check/differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "yoke/report/table.h"

namespace yoke::check {
namespace {

constexpr const char* kNone = "none";

struct Fact {
  std::string name, value;
};

// Counts equal texts: "8x NVIDIA B300 SXM6 AC".
std::string counted(const std::vector<std::string>& texts) {
  std::map<std::string, int> counts;
  for (const std::string& text : texts) ++counts[text];
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(count == 1 ? text : fmt::format("{}x {}", count, text));
  return parts.empty() ? kNone : fmt::format("{}", fmt::join(parts, ", "));
}

// Kernels reserve a little more or less of the same memory: whole GiB are compared.
std::string in_gib(std::optional<Bytes> size) {
  if (!size) return kNone;
  return fmt::format("{} GiB", std::lround(static_cast<double>(size->value) / (1LL << 30)));
}

// Which build, wherever it lies: version and the start of its build id, as people compare them.
std::string describe(const spec::NcclBuild& build) {
  return fmt::format("{} ({})", build.version.value_or("unknown version"),
                     build.build_id ? build.build_id->substr(0, 8) : "no build id");
}

void add_software(const spec::Machine& machine, std::vector<Fact>& facts) {
  const auto text = [](const std::optional<std::string>& value) { return value.value_or(kNone); };
  facts.insert(facts.end(), {{"architecture", machine.architecture},
                             {"os", machine.os},
                             {"kernel", machine.kernel},
                             {"product", text(machine.product)},
                             {"bios", text(machine.bios)},
                             {"DGX release", machine.dgx ? text(machine.dgx->version) : kNone},
                             {"DGX update", machine.dgx ? text(machine.dgx->update) : kNone},
                             {"driver", text(machine.driver)},
                             {"CUDA", text(machine.cuda)},
                             {"CUDA toolkit", text(machine.cuda_toolkit)}});
  std::vector<std::string> builds;
  for (const spec::NcclBuild& build : machine.nccl) builds.push_back(describe(build));
  std::sort(builds.begin(), builds.end());
  builds.erase(std::unique(builds.begin(), builds.end()), builds.end());
  facts.push_back({"NCCL", counted(builds)});
  facts.push_back({"container runtimes", counted(machine.containers.runtimes)});
  facts.push_back({"memlock", machine.memlock_unlimited ? "unlimited"
                              : machine.memlock         ? yoke::to_string(*machine.memlock)
                                                        : kNone});
}

// Of a port with a link; where the interface does not tell, as in a lab, what its RDMA device says.
std::string speed_of(const spec::Machine& machine, const spec::NetworkInterface& interface) {
  if (interface.speed) return yoke::to_string(*interface.speed);
  const spec::RdmaDevice* const device = spec::find_rdma_device(machine, interface.rdma_device.value_or(""));
  return device && device->rate && interface.carrier ? yoke::to_string(*device->rate) : kNone;
}

void add_hardware(const spec::Machine& machine, std::vector<Fact>& facts) {
  facts.push_back({"processor", machine.cpu.model});
  facts.push_back({"cores", machine.cpu.cores ? fmt::format("{}", *machine.cpu.cores) : kNone});
  facts.push_back({"memory", in_gib(machine.memory.total)});
  facts.push_back({"swap", in_gib(machine.memory.swap_total)});
  std::vector<std::string> gpus;
  for (const spec::Gpu& gpu : machine.gpus) gpus.push_back(gpu.name);
  facts.push_back({"GPUs", counted(gpus)});
  std::vector<std::string> firmware;
  for (const spec::RdmaDevice& device : machine.rdma_devices) firmware.push_back(device.firmware.value_or("unknown"));
  facts.push_back({"NIC firmware", counted(firmware)});
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(machine)) {
    const std::string which = fmt::format("of port {} half {}", *interface->port, *interface->rail);
    facts.push_back({"MTU " + which, fmt::format("{}", interface->mtu)});
    facts.push_back({"speed " + which, speed_of(machine, *interface)});
    facts.push_back({"PCIe " + which, interface->pcie ? fmt::format("{} GT/s x{}", interface->pcie->speed_gt_per_second,
                                                                    interface->pcie->width)
                                                      : kNone});
  }
}

}  // namespace

std::vector<Difference> find_differences(const std::vector<std::pair<std::string, spec::Machine>>& machines) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_fact;  // a value for each node
  for (std::size_t node = 0; node < machines.size(); ++node) {
    std::vector<Fact> facts;
    add_software(machines[node].second, facts);
    add_hardware(machines[node].second, facts);
    for (Fact& fact : facts) {
      if (!by_fact.contains(fact.name)) order.push_back(fact.name);
      std::vector<std::string>& values = by_fact[fact.name];
      values.resize(machines.size(), kNone);
      values[node] = std::move(fact.value);
    }
  }
  std::vector<Difference> differences;
  for (const std::string& name : order) {
    Difference difference{.fact = name};
    for (std::size_t node = 0; node < machines.size(); ++node) {
      const std::string& value = by_fact[name][node];
      auto known = std::find_if(difference.values.begin(), difference.values.end(),
                                [&](const Difference::Value& other) { return other.value == value; });
      if (known == difference.values.end()) known = difference.values.insert(known, {value, {}});
      known->nodes.push_back(machines[node].first);
    }
    if (difference.values.size() > 1) differences.push_back(std::move(difference));
  }
  return differences;
}

std::optional<Difference> find_difference(const spec::Survey& survey, std::string_view fact) {
  std::vector<std::pair<std::string, spec::Machine>> machines;
  for (const spec::SurveyedNode& node : survey.nodes) {
    if (node.machine) machines.emplace_back(node.name, *node.machine);
  }
  for (Difference& difference : find_differences(machines)) {
    if (difference.fact != fact) continue;
    std::erase_if(difference.values,
                  [](const Difference::Value& value) { return value.value.empty() || value.value == kNone; });
    return difference.values.size() > 1 ? std::optional(std::move(difference)) : std::nullopt;
  }
  return std::nullopt;
}

std::string to_string(const Difference& difference) {
  std::vector<std::string> parts;
  for (const Difference::Value& value : difference.values) {
    parts.push_back(fmt::format("{} on {}", value.value, fmt::join(value.nodes, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Document to_json(const std::vector<Difference>& differences) {
  Document list = Document::list();
  for (const Difference& difference : differences) {
    Document values = Document::list();
    for (const Difference::Value& value : difference.values) {
      Document nodes = Document::list();
      for (const std::string& node : value.nodes) nodes.items.push_back(Document::string(node));
      values.items.push_back(Document::map({{"value", Document::string(value.value)}, {"nodes", std::move(nodes)}}));
    }
    list.items.push_back(Document::map({{"fact", Document::string(difference.fact)}, {"values", std::move(values)}}));
  }
  return list;
}

std::string differences_text(const std::vector<Difference>& differences) {
  if (differences.empty()) return "Nothing that matters differs between the nodes.\n";
  report::Table table{.title = "What differs",
                      .columns = {{.header = "fact"},
                                  {.header = "value", .fit = report::ColumnFit::kShrinks},
                                  {.header = "nodes", .fit = report::ColumnFit::kShrinks}}};
  for (const Difference& difference : differences) {
    for (const Difference::Value& value : difference.values) {
      const bool first = &value == difference.values.data();
      table.rows.push_back(
          {first ? difference.fact : "", value.value, fmt::format("{}", fmt::join(value.nodes, ", "))});
    }
  }
  return report::render_text(table);
}

}  // namespace yoke::check
