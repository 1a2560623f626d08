#include "yoke/bench/calibration_files.h"

#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::bench {
namespace fs = std::filesystem;

fs::path calibration_file(const std::string& name) {
  // Names of clusters and hosts hold no slash; whatever else comes must not leave the folder.
  std::string safe;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '_' || (c == '.' && !safe.empty());
    safe += is_plain ? c : '_';
  }
  return user_data_dir() / "calibrations" / (safe.substr(0, 100) + ".json");
}

plan::Calibration read_calibration(const fs::path& file) {
  // As kept, or all that 'yoke bench calibrate --json' printed.
  const Document document = parse_json(read_file(file), file.native());
  const Document* const inside = document.find("calibration");
  return from_json<plan::Calibration>(inside != nullptr ? *inside : document);
}

std::optional<plan::Calibration> find_calibration(const std::string& name) {
  const fs::path file = calibration_file(name);
  if (!fs::exists(file)) return std::nullopt;
  return read_calibration(file);
}

void write_calibration(const plan::Calibration& calibration, const fs::path& file) {
  if (file.has_parent_path()) make_folder(file.parent_path());
  write_file_atomically(file, print_json(plan::to_json(calibration)) + "\n");
}

}  // namespace yoke::bench
