#include "yoke/lab/hardware_faults.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/lab/hardware_functions.h"

namespace yoke::lab {
namespace {

void check_names(const std::vector<std::string>& names, const std::vector<std::string>& known, std::string_view what) {
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error(ErrorCode::kNotFound, fmt::format("there is no {} '{}' in this node", what, printable(name, 60)),
                suggest(name, known, fmt::format("{}s", what)));
  }
}

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, HardwareFaults& faults) {
  visit.optional("gid_drift", faults.gid_drift);
  visit.optional("narrow_pcie", faults.narrow_pcie);
  visit.optional("port_speed_100", faults.port_speed_100);
  visit.optional("memory", faults.memory);
}

HardwareFaults parse_hardware_faults(std::string_view json, std::string_view source) {
  return from_json<HardwareFaults>(parse_json(json, source));
}

void check_hardware_faults(const FileTree& tree, const HardwareFaults& faults) {
  const std::vector<RdmaFunction> functions = find_rdma_functions(tree);
  std::vector<std::string> devices;
  for (const RdmaFunction& function : functions) devices.push_back(function.device);
  std::vector<std::string> addresses;
  for (const auto& [address, folder] : find_pci_neighbours(tree, functions)) addresses.push_back(address);
  check_names(faults.gid_drift, devices, "RDMA device");
  check_names(faults.port_speed_100, devices, "RDMA device");
  check_names(faults.narrow_pcie, addresses, "PCI address");
}

}  // namespace yoke::lab
