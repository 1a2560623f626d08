// NCCL logs for tests: those of the fuzzer's corpus, and what is told of one.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/rule.h"

namespace yoke::check {

inline spec::NcclLog parse_nccl_log(std::string_view text) {
  spec::NcclLog log;
  add_nccl_log(log, text);
  return log;
}

inline spec::NcclLog load_nccl_log(const std::string& name) {
  return parse_nccl_log(
      read_file(std::filesystem::path(YOKE_SOURCE_DIR) / "tests/corpus/nccl_log_fuzz" / (name + ".log")));
}

inline std::vector<spec::Finding> evaluate(const spec::NcclLog& log) { return evaluate(spec::Survey{.log = log}); }

inline std::vector<std::string> rules_of(const spec::NcclLog& log) {
  std::vector<std::string> rules;
  for (const spec::Finding& finding : evaluate(log)) rules.push_back(finding.rule);
  return rules;
}

}  // namespace yoke::check
