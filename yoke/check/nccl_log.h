// What an NCCL log (NCCL_DEBUG=INFO) tells of how the ranks talk: read into plain data, evaluated, and said in words.
// Pure. Logs of several hosts and ranks may be mixed, as mpirun mixes them, behind whatever
// launchers and containers put before each line; lines that are not NCCL's are skipped.
//
//   spec::NcclLog log;
//   add_nccl_log(log, text);  // once for each file of the job
//   fmt::print("{}", describe(log));
//   const std::vector<Finding> findings = evaluate({.log = log});  // rule.h
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"
#include "yoke/base/limits.h"
#include "yoke/spec/nccl_log.h"

namespace yoke::check {

// Throws Error(kExhausted) for a text that takes more processor time than allowed.
void add_nccl_log(spec::NcclLog& log, std::string_view text, std::chrono::nanoseconds allowed = limits::kLogTime);

// A few lines: transport, interfaces, rails, MTU, GIDs, GPUDirect.
std::string describe(const spec::NcclLog& log);
Document to_json(const spec::NcclLog& log);

// Which PCI domain a device of a host is in, by its pciPath or by its name (roceP2p1s0f0): rails of a port differ in
// it. Nothing where neither tells.
std::optional<std::string> pci_domain(const spec::NcclHost& host, const std::string& device);

}  // namespace yoke::check
