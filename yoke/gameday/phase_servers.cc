// The phases about servers with several GPUs: is each whole, what NVIDIA's own diagnostic says, and what an all-reduce
// inside of a server reaches. The rules are those of `yoke check`; here are the tables of an acceptance.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/bandwidth.h"
#include "yoke/gameday/dcgm_answer.h"
#include "yoke/gameday/findings.h"
#include "yoke/gameday/phases.h"
#include "yoke/spec/hardware.h"

namespace yoke::gameday {
namespace {

std::string text_or(const Document& document, std::string_view path) {
  const Document* const found = find_at(document, path);
  return found ? found->text : "-";
}

// "8 x NVIDIA B300 SXM6 AC", of those that NVML shows; and how many only the bus shows.
std::string gpus_text(const Document& machine) {
  const Document* const gpus = find_at(machine, "gpus");
  if (!gpus || gpus->items.empty()) return "none";
  const auto asked = std::ranges::count_if(gpus->items, [](const Document& gpu) { return find_at(gpu, "index"); });
  std::string text = asked > 0 ? fmt::format("{} x {}", asked, text_or(gpus->items.front(), "name")) : "";
  if (const auto silent = std::ssize(gpus->items) - asked; silent > 0) {
    text += fmt::format("{}{} on the bus that the driver does not show", text.empty() ? "" : ", ", silent);
  }
  return text;
}

// Of all GPUs: "18 of 18" where all have the same, else the lowest.
std::string nvlinks_text(const Document& machine) {
  const Document* const gpus = find_at(machine, "gpus");
  std::optional<double> lowest, links;
  for (const Document& gpu : gpus ? gpus->items : std::vector<Document>()) {
    if (!find_at(gpu, "nvlinks_active") || !find_at(gpu, "nvlinks")) continue;
    lowest = std::min(lowest.value_or(1e9), number_at(gpu, "nvlinks_active"));
    links = std::max(links.value_or(0), number_at(gpu, "nvlinks"));
  }
  return lowest ? fmt::format("{:.0f} of {:.0f}", *lowest, *links) : "-";
}

std::string rdma_text(const Document& machine) {
  const Document* const devices = find_at(machine, "rdma_devices");
  return devices ? fmt::format("{}", devices->items.size()) : "none";
}

void show_servers(const Environment& environment, PhaseRun& phase_run) {
  const Document answer = phase_run.run_json({"probe", "--cluster", environment.cluster_word()});
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "product"},
                                  {.header = "GPUs"},
                                  {.header = "NVLinks"},
                                  {.header = "driver"},
                                  {.header = "RDMA devices", .align = report::TextAlign::kRight}}};
  for (const Document& node : list_at(answer, "nodes").items) {
    const Document* const machine = find_at(node, "machine");
    if (!machine) {
      phase_run.expect(false, fmt::format("{} is examined", text_at(node, "name")));
      continue;
    }
    table.rows.push_back({text_at(node, "name"), text_or(*machine, "product"), gpus_text(*machine),
                          nvlinks_text(*machine), text_or(*machine, "driver"), rdma_text(*machine)});
  }
  phase_run.show(table);
}

void run_dcgm(const Environment& environment, PhaseRun& phase_run) {
  const int level = environment.options().dcgm_level;
  if (level == 0) return phase_run.print("NVIDIA's diagnostic is left out: --dcgm 0");
  constexpr int kMinutes[] = {0, 5, 15, 60, 240};  // by level: twice of what NVIDIA states for eight GPUs
  const int minutes = kMinutes[level];
  const std::string script = dcgm_script({.level = level, .limit = Seconds{60.0 * minutes}});
  const Outcome outcome =
      phase_run.run({"job", "run", "--no-pins", "--cluster", environment.cluster_word(), "--", "sh", "-c", script},
                    {.limit = Seconds{60.0 * (minutes + 2)}});
  const std::map<std::string, std::string> nodes = lines_by_node(outcome.out);
  phase_run.expect(!nodes.empty(), "the diagnostic is asked for on every node");
  report::Table table{.columns = {{.header = "node"}, {.header = "dcgmi diag"}, {.header = "says"}}};
  int without = 0;
  for (const auto& [node, text] : nodes) {
    if (has_no_dcgm(text)) {
      ++without;
      table.rows.push_back({node, "not installed", "-"});
      continue;
    }
    const DcgmAnswer answer = read_dcgm(text);
    std::string says = answer.problem;
    for (const DcgmTest& test : answer.tests) {
      for (const std::string& line : test.says)
        says += fmt::format("{}{}: {}", says.empty() ? "" : "; ", test.name, line);
    }
    table.rows.push_back(
        {node,
         fmt::format("{} passed, {} warned, {} failed, {} skipped", answer.count(DcgmStatus::kPass),
                     answer.count(DcgmStatus::kWarn), answer.count(DcgmStatus::kFail), answer.count(DcgmStatus::kSkip)),
         says.empty() ? "-" : says});
    phase_run.expect(answer.passed(), fmt::format("NVIDIA's diagnostic passes on {}", node));
  }
  phase_run.show(table);
  if (without > 0) phase_run.print(fmt::format("dcgmi is not installed on {} of {} nodes", without, nodes.size()));
}

}  // namespace

std::optional<std::string> why_no_servers(const Environment& environment) {
  if (environment.gpus_of_node() > 1) return std::nullopt;
  return "the nodes are no servers with several GPUs ('hardware' of the cluster file)";
}

std::optional<std::string> why_no_nvlink(const Environment& environment) {
  if (auto why = why_no_servers(environment)) return why;
  if (environment.lab()) return "a lab has no GPUs and no NVLink";
  return std::nullopt;
}

void run_servers_phase(Environment& environment, PhaseRun& phase_run) {
  show_servers(environment, phase_run);
  if (environment.lab()) {
    phase_run.print(
        "A lab has PCI trees, NICs and rails of servers. It has no GPUs that work, no NVLink, no fabric manager");
    phase_run.print("and no RDMA traffic: the rules about these have nothing to examine here.");
  }
  const Document answer = look(phase_run, {"check", "--no-measure", "--cluster", environment.cluster_word()});
  phase_run.figure({.name = "rules", .value = number_at(answer, "rules"), .note = "of yoke check"});
  phase_run.expect(is_clean(answer), "every server is whole: no rule finds anything");
  run_dcgm(environment, phase_run);
}

void run_inside_phase(Environment& environment, PhaseRun& phase_run) {
  const std::string all = std::to_string(environment.cluster().nodes.size());
  const std::string counts = all == "1" ? "1" : "1," + all;
  const Document answer = phase_run.run_json({"bench", "scaling", "--nodes", counts, "-b", "1G", "-e", "1G",
                                              "--no-history", "--cluster", environment.cluster_word()});
  report::Table table{.columns = {{.header = "GPUs", .align = report::TextAlign::kRight},
                                  {.header = "time", .align = report::TextAlign::kRight},
                                  {.header = "bus bandwidth", .align = report::TextAlign::kRight},
                                  {.header = "transport"}}};
  for (const Document& run : list_at(answer, "runs").items) {
    const Bandwidth measured = bandwidth_of(run);
    const auto ranks = list_at(run, "ranks").items.size();
    table.rows.push_back({fmt::format("{}", ranks), yoke::to_string(Seconds{measured.rows.back().time / 1e6}),
                          yoke::to_string(BytesPerSecond{measured.largest() * 1e9}), measured.transport});
    phase_run.figure({.name = fmt::format("{} GPUs", ranks),
                      .value = measured.largest(),
                      .unit = "GB/s",
                      .note = measured.against_limit()});
    phase_run.expect(measured.wrong == 0, fmt::format("every result of {} GPUs is right", ranks));
    expect_complete(phase_run, measured, fmt::format("the all-reduce of {} GPUs reaches its limit", ranks));
  }
  phase_run.show(table);
}

}  // namespace yoke::gameday
