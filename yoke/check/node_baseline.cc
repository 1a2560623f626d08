#include "yoke/check/node_baseline.h"

#include <fmt/format.h>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::check {

template <class Visitor>
void visit_fields(Visitor& visit, NodeBaseline& baseline) {
  visit.required("gpus", baseline.gpus);
  visit.required("nvlinks", baseline.nvlinks);
  visit.required("rails", baseline.rails);
  visit.optional("memory", baseline.memory);
}

Document to_json(const NodeBaseline& baseline) { return write_fields(baseline); }
void from_json(const Document& document, NodeBaseline& baseline) { read_fields(document, baseline); }

namespace {

namespace fs = std::filesystem;

constexpr double kMinMemory = 0.98;  // of before: a kernel's own share moves by less, a memory module is more

fs::path baseline_file(const std::string& node) {
  const fs::path folder = user_data_dir() / "checks";
  make_private_folder(folder);
  std::string name;
  for (const char c : node) name += c == '/' ? '_' : c;
  return folder / ("node-" + name + ".json");
}

}  // namespace

NodeBaseline baseline_of(const spec::Machine& machine) {
  NodeBaseline baseline{.memory = machine.memory.total};
  for (const spec::Gpu& gpu : machine.gpus) {
    if (!gpu.index) continue;
    ++baseline.gpus;
    baseline.nvlinks += gpu.nvlinks_active.value_or(0);
  }
  for (const spec::RdmaDevice& device : machine.rdma_devices) baseline.rails += device.state == "ACTIVE" ? 1 : 0;
  return baseline;
}

std::vector<spec::Finding> find_below_baseline(const std::string& node, const NodeBaseline& now,
                                               const NodeBaseline& before) {
  std::vector<spec::Finding> findings;
  const auto add = [&](std::string subject, const std::string& is, const std::string& was) {
    findings.push_back({.rule = "below-baseline",
                        .severity = spec::Severity::kError,
                        .node = node,
                        .subject = std::move(subject),
                        .what = fmt::format("{} of {} before", is, was),
                        .evidence = "the baseline of this node's last healthy check",
                        .consequence = "jobs that count on it fail or are slow",
                        .fix = "'yoke check' says more; where the node was changed on purpose, 'yoke check --prolog "
                               "--new-baseline'"});
  };
  const auto compare = [&](const char* subject, int is, int was) {
    if (is < was) add(subject, std::to_string(is), std::to_string(was));
  };
  compare("GPUs", now.gpus, before.gpus);
  if (now.gpus >= before.gpus) compare("NVLinks", now.nvlinks, before.nvlinks);
  compare("rails", now.rails, before.rails);
  const bool less = now.memory && before.memory && *now.memory / *before.memory < kMinMemory;
  if (less) add("memory", yoke::to_string(*now.memory), yoke::to_string(*before.memory));
  return findings;
}

std::optional<NodeBaseline> recall_baseline(const std::string& node) {
  const fs::path file = baseline_file(node);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  return from_json<NodeBaseline>(parse_json(read_file(file), file.native()));
}

void remember_baseline(const std::string& node, const NodeBaseline& baseline) {
  write_file_atomically(baseline_file(node), print_json(to_json(baseline)) + "\n");
}

}  // namespace yoke::check
