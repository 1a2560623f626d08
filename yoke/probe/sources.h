// Where the facts of a machine come from: its files, the kernel's network tables, NVML, and what only asking tells.
// They can be those of this machine, or those of a capture: a folder with machine.tree, links.json, nvml.json and
// system.json, the form of tests/fixtures.
//
//   const Sources sources = sources_here();
//   const Machine machine = probe_machine(sources);            // probe.h
//   const Machine other = probe_machine(load_capture("desk-1"));
#pragma once
#include <filesystem>
#include <memory>

#include "yoke/base/file_tree.h"
#include "yoke/probe/link_table.h"
#include "yoke/probe/nvml_facts.h"
#include "yoke/probe/system_facts.h"

namespace yoke::probe {

struct Sources {
  std::shared_ptr<const FileTree> files;
  LinkTable links;
  NvmlFacts nvml;
  SystemFacts system;
};

Sources sources_here();
// The same without NVML, which takes seconds to wake GPUs, and without a search for NCCL: what the network is, and
// which GPUs are on the bus.
Sources quick_sources_here();
// All but the search for NCCL, the slowest part: whether the machine is fit for a job.
Sources health_sources_here();

// Throws Error kNotFound for a folder that holds no capture, kInvalid naming the file and place that is broken.
Sources load_capture(const std::filesystem::path& folder);

// Probes and writes down what was looked at, into a folder that must be empty or not there yet. Serial numbers and
// secrets are left out (recording_tree.h); MAC and IP addresses are not.
void write_capture(const Sources& sources, const std::filesystem::path& folder);

}  // namespace yoke::probe
