// NCCL logs for tests: those of the fuzzer's corpus, and what is told of one.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/rule.h"

namespace yoke {

inline NcclLog load_nccl_log(const std::string& name) {
  return parse_nccl_log(
      read_file(std::filesystem::path(YOKE_SOURCE_DIR) / "tests/corpus/nccl_log_fuzz" / (name + ".log")));
}

inline std::vector<Finding> judge(const NcclLog& log) { return judge(Survey{.log = log}); }

inline std::vector<std::string> rules_of(const NcclLog& log) {
  std::vector<std::string> rules;
  for (const Finding& finding : judge(log)) rules.push_back(finding.rule);
  return rules;
}

}  // namespace yoke
