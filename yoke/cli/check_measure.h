// The measuring part of `yoke check`: a short `yoke link test`, run as the program's own process on the head.
#pragma once
#include <filesystem>
#include <string>

#include "yoke/base/result.h"
#include "yoke/base/units.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/measurement.h"

namespace yoke {

// Each half takes part in five windows of this length, so that a half is measured for about a second.
inline constexpr Seconds kCheckWindow{0.2};

// An Error that says why nothing was measured is an answer here: the rest of the check stands all the same.
Result<Measurement> measure_cluster(const Cluster& cluster, const std::filesystem::path& cluster_file);

}  // namespace yoke
