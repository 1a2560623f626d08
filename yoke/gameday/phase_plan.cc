// The phase about what is expected: constants measured on these nodes, then the plan of the model that phase `model`
// runs. That phase shows what was measured beside it.
#include <fmt/format.h>

#include "yoke/gameday/answers.h"
#include "yoke/gameday/phases.h"

namespace yoke::gameday {
namespace {

Document plan_of(const Environment& environment, PhaseRun& phase_run, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"plan",      environment.model_played,
                                    "--on",      environment.cluster_word(),
                                    "--engine",  "yoke",
                                    "--context", kContext,
                                    "--prompt",  "40",
                                    "--output",  kAnswer};
  words.insert(words.end(), more.begin(), more.end());
  return phase_run.run_json(words, {.answers = {0, 1}});
}

bool plan_fits(const Document& plan) {
  const Document* const fits = find_at(plan, "fits");
  return fits != nullptr && fits->text == "true";
}

const Document* decode_estimate(const Document& plan) {
  for (const Document& estimate : list_at(plan, "estimates").items) {
    if (text_at(estimate, "name") == "decode, one request") return &estimate;
  }
  return nullptr;
}

void show_steps(PhaseRun& phase_run, const Document& plan) {
  report::Table table{.title = "Where a decode step is expected to go",
                      .columns = {{.header = "part"}, {.header = "time", .align = report::TextAlign::kRight}}};
  for (const Document& part : list_at(plan, "step").items) {
    table.rows.push_back({text_at(part, "part"), to_string(Seconds{number_at(part, "seconds")})});
  }
  phase_run.show(table);
}

}  // namespace

void run_plan_phase(Environment& environment, PhaseRun& phase_run) {
  prepare_model(environment, phase_run);
  std::vector<std::string> calibrate = {"bench", "calibrate", "--cluster", environment.cluster_word(), "--no-history"};
  if (const std::size_t threads = threads_of_rank(environment)) {
    calibrate.insert(calibrate.end(), {"--threads", fmt::format("{}", threads)});
  }
  const Document measured = phase_run.run_json(calibrate);
  phase_run.figure({.name = "memory", .value = number_at(measured, "calibration.bandwidth") / 1e9, .unit = "GB/s"});
  const Document one = plan_of(environment, phase_run, {"--nodes", "1"});
  const Document all = plan_of(environment, phase_run, {});
  const bool one_holds = plan_fits(one);
  if (!environment.why_no_memory_limit())
    phase_run.expect(!one_holds, "the plan shows that one node does not hold the model");
  phase_run.expect(plan_fits(all), "the plan shows that all nodes hold it");
  const Document* const decode = decode_estimate(all);
  phase_run.expect(decode != nullptr, "the plan predicts how fast it will be");
  if (decode == nullptr) return;
  environment.expectation = Expectation{.rate = number_at(*decode, "value"),
                                        .low = number_at(*decode, "low"),
                                        .high = number_at(*decode, "high"),
                                        .one_node_holds_it = one_holds};
  phase_run.print(fmt::format("expected: {:.3g} tokens/s ({:.3g} to {:.3g}), {}", environment.expectation->rate,
                              environment.expectation->low, environment.expectation->high,
                              text_at(*decode, "provenance")));
  show_steps(phase_run, all);
  phase_run.figure(
      {.name = "decode, planned",
       .value = environment.expectation->rate,
       .unit = "tokens/s",
       .note = fmt::format("{:.3g} to {:.3g}", environment.expectation->low, environment.expectation->high)});
}

}  // namespace yoke::gameday
