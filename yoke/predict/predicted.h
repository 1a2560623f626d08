// What the plan expects of a run or a measurement that has just ended, to be shown beside it and kept with it. A
// prediction that cannot be made is none: it never costs a result.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/collective_run.h"
#include "yoke/bench/run_record.h"
#include "yoke/engine/options.h"
#include "yoke/plan/planner.h"
#include "yoke/spec/cluster.h"

namespace yoke::predict {

struct PredictedRate {
  double value = 0;  // tokens/s
  double low = 0;    // of the 80% interval
  double high = 0;
};

struct PredictedRun {
  PredictedRate prefill;
  PredictedRate decode;
  bool is_calibrated = false;  // by 'yoke bench calibrate' on these machines
};

// Of one request to yoke's engine. `cluster`: the nodes that took part; none: this machine, whatever its ranks.
struct RunAsked {
  engine::EngineOptions engine;
  std::optional<spec::Cluster> cluster;
  std::size_t prompt_tokens = 0;
  std::size_t answer_tokens = 0;
};
std::optional<PredictedRun> predict_run(const RunAsked& asked);
// What the plan is asked for it; throws where there is no plan of it.
plan::Request planned_request(const RunAsked& asked);
std::string predicted_text(const PredictedRun& predicted, double decode_measured);
Document to_json(const PredictedRun& predicted);

// Microseconds of each row of an all-reduce over the nodes of a cluster; empty where the plan has nothing to say.
std::vector<std::optional<double>> predict_all_reduce(const bench::CollectiveRun& run,
                                                      const std::optional<spec::Cluster>& cluster);
std::string predicted_text(const bench::CollectiveRun& run, const std::vector<std::optional<double>>& predicted);

// What plans count with for this machine: GB/s read by all cores, GFLOP/s.
struct PredictedMachine {
  double bandwidth = 0;
  double arithmetic = 0;
  std::string source;
};
PredictedMachine predict_machine();
// Fills `predicted` of the rows that it concerns, and says both numbers in a line.
std::string add_predicted(bench::RunRecord& record, const PredictedMachine& machine);

std::filesystem::path calibration_place(
    const std::optional<spec::Cluster>& cluster);  // where to write it; none: this machine

// Nothing where none was made, or the lab is not up.
std::optional<plan::Calibration> find_cluster_calibration(const spec::Cluster& cluster);
std::optional<plan::Calibration> find_calibration_here();

}  // namespace yoke::predict
