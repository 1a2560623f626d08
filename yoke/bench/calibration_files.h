// Where calibrations lie: one file for each cluster, and one for this machine, in the user's data folder.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "yoke/plan/calibration.h"

namespace yoke::bench {

std::filesystem::path calibration_file(const std::string& name);  // "desk": …/yoke/calibrations/desk.json
// Nothing where there is none. Error(kInvalid) names a file that makes no sense.
std::optional<plan::Calibration> find_calibration(const std::string& name);
plan::Calibration read_calibration(const std::filesystem::path& file);
void write_calibration(const plan::Calibration& calibration, const std::filesystem::path& file);

}  // namespace yoke::bench
