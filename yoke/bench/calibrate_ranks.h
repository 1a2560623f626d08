// Takes the samples of a calibration: on every node at once, by ranks that are started as those of any measurement.
// Each rank makes small models in a folder of its own and runs yoke's engine on them, first alone, then over all ranks.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "yoke/bench/calibrate.h"
#include "yoke/rank/rank_part.h"
#include "yoke/spec/cluster.h"

namespace yoke::bench {

struct CalibrateRequest {
  int threads = 0;  // of each rank; 0: the engine's own choice
  std::optional<spec::Cluster> cluster = {};
  std::function<void(const std::string& what)> on_progress = {};
};

// One rank on each node of the cluster, or one here.
CalibrationSamples measure_samples(const CalibrateRequest& request);

rank::RankKind calibrate_rank_kind();  // `yoke rank calibrate`

}  // namespace yoke::bench
