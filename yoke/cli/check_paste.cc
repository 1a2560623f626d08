// yoke check --paste: one page for a post in a forum.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/build_info.h"
#include "yoke/check/cluster_view.h"
#include "yoke/check/redact.h"
#include "yoke/cli/check_text.h"

namespace yoke {
namespace {

constexpr std::size_t kNodesMost = 8;  // a page holds no more
constexpr std::size_t kFindingsMost = 12;

std::string nccl_text(const Machine& machine) {
  std::vector<std::string> parts;
  for (const NcclBuild& build : machine.nccl) {
    parts.push_back(fmt::format("{} {}", build.version.value_or("?"), build.build_id.value_or("").substr(0, 8)));
  }
  return parts.empty() ? "none found" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string node_text(const ClusterView& view, const SurveyedNode& node) {
  if (!node.machine) return fmt::format("**{}**: not seen ({})\n\n", node.name, node.failure->message);
  const Machine& machine = *node.machine;
  std::string out =
      fmt::format("**{}**: {} {}, {}, kernel {}, driver {}, CUDA {}, NCCL {}\n\n", node.name,
                  machine.vendor.value_or(""), machine.product.value_or("machine"), machine.os, machine.kernel,
                  machine.driver.value_or("none"), machine.cuda.value_or("none"), nccl_text(machine));
  const std::vector<const HalfEnd*> halves = view.halves_of(node);
  if (halves.empty()) return out;
  out +=
      "| half | interface | link | address | MTU | PCIe | RDMA | firmware | GID "
      "|\n|---|---|---|---|---|---|---|---|---|\n";
  for (const HalfEnd* end : halves) {
    if (!end->interface) {
      out += fmt::format("| {} | {} | not there | | | | | | |\n", end->half, end->name);
      continue;
    }
    const auto& pcie = end->interface->pcie;
    const RdmaDevice* rdma = end->rdma;
    out += fmt::format(
        "| {} of {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", end->half, end->port, end->name,
        end->is_up() ? "up" : "down", end->address ? to_string(*end->address) : "none", end->interface->mtu,
        pcie ? fmt::format("{:g} GT/s x{}", pcie->speed_gt_per_second, pcie->width) : "-",
        rdma ? fmt::format("{} {}", rdma->name, rdma->state) : "-", rdma ? rdma->firmware.value_or("-") : "-",
        rdma && rdma->gid_index ? std::to_string(*rdma->gid_index) : "-");
  }
  for (const NetworkSetting& setting : machine.settings) {
    out += fmt::format("- `{}={}` ({})\n", setting.name, setting.value, setting.where);
  }
  return out + "\n";
}

std::string rates_text(const CheckReport& report) {
  if (!report.facts.measurement) return fmt::format("Not measured: {}.\n\n", report.not_measured);
  std::string out = "| from | to | interface | alone | together |\n|---|---|---|---|---|\n";
  for (const HalfMeasurement& half : report.facts.measurement->halves) {
    const auto rate = [](const std::optional<BitsPerSecond>& value) { return value ? to_string(*value) : "-"; };
    out += fmt::format("| {} | {} | {} | {} | {} |\n", half.from, half.to, half.from_interface, rate(half.alone),
                       rate(half.together));
  }
  return out + "\n";
}

}  // namespace

std::string paste_text(const CheckReport& report, const std::vector<std::string>& names) {
  const ClusterView view(report.facts);
  std::string out = fmt::format("### yoke check ({}): nodes: {}, findings: {}\n\n", build_info().version,
                                report.facts.nodes.size(), report.findings.size());
  for (std::size_t i = 0; i < report.facts.nodes.size() && i < kNodesMost; ++i) {
    out += node_text(view, report.facts.nodes[i]);
  }
  if (report.facts.nodes.size() > kNodesMost)
    out += fmt::format("… and {} more nodes\n\n", report.facts.nodes.size() - kNodesMost);
  out += rates_text(report);
  for (std::size_t i = 0; i < report.findings.size() && i < kFindingsMost; ++i) {
    const Finding& finding = report.findings[i];
    out += fmt::format("- **{}** {}: {}. Evidence: {}\n", finding.rule, finding.node.value_or("cluster"), finding.what,
                       finding.evidence);
  }
  if (report.findings.size() > kFindingsMost)
    out += fmt::format("- … and {} more\n", report.findings.size() - kFindingsMost);
  return redact(out, names);
}

}  // namespace yoke
