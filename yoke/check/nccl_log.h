// What an NCCL log (NCCL_DEBUG=INFO) tells of how the ranks talk: read into plain data, judged, and said in words.
// Pure. Logs of several hosts and ranks may be mixed, as mpirun mixes them, behind whatever
// launchers and containers put before each line; lines that are not NCCL's are skipped.
//
//   const NcclLog log = parse_nccl_log(text);
//   fmt::print("{}", describe(log));
//   const std::vector<Finding> findings = judge({.log = log});  // rule.h
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"
#include "yoke/spec/nccl_log.h"

namespace yoke {

NcclLog parse_nccl_log(std::string_view text);
void add_nccl_log(NcclLog& log, std::string_view text);  // another file of the same job

// A few lines: transport, interfaces, halves, MTU, GIDs, GPUDirect.
std::string describe(const NcclLog& log);
Document to_json(const NcclLog& log);

// Which PCI domain a device of a host is in, by its pciPath or by its name (roceP2p1s0f0): halves of a port differ in
// it. Nothing where neither tells.
std::optional<std::string> pci_domain(const NcclHost& host, const std::string& device);

}  // namespace yoke
