// An environment file (nccl_env.sh, fabric.env, a Slurm script) line by line: what each setting does, and whether it is
// right on these machines. Pure. What is wrong with a pin is what the rules of `yoke check` say of it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/survey.h"

namespace yoke::check {

enum class SettingVerdict { kRight, kWrong, kDoubtful, kUnknown };

struct ExplainedSetting {
  int line = 0;
  std::string name, value;
  std::string does;  // empty: not known here
  SettingVerdict verdict = SettingVerdict::kUnknown;
  std::string why;  // of a verdict that is not kRight
  std::string fix;
};

struct KnownSetting {
  std::string_view name, does;
};
std::span<const KnownSetting> known_settings();

// Every assignment (with or without "export"), and every "#SBATCH --name=value"; all else is passed over.
std::vector<ExplainedSetting> explain_settings(std::string_view text, std::string_view file, const spec::Survey& facts);

std::string_view to_string(SettingVerdict verdict);  // "right", "wrong", "doubtful", "not known"
Document to_json(const std::vector<ExplainedSetting>& settings);

}  // namespace yoke::check
