// Is a claimed number plausible, and what would it imply?
//
//   explain_claim("69 tok/s gpt-oss-120b 2xspark", constants).verdict == "plausible"
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/plan/planner.h"

namespace yoke::plan {

struct ClaimExplained {
  std::string claim;
  std::string verdict;  // "plausible", "high", "low", "impossible"
  double claimed = 0;
  std::string unit;
  Estimate expected;
  std::string layout;              // the one that expects it
  double bandwidth_percent = 0;    // of all GPUs together
  double arithmetic_percent = 0;   // of dense peak
  std::vector<std::string> notes;  // what was assumed, what it would take
};

// Words in any order: a number with its unit (tok/s, s/image), a model, machines (2xspark); and where wanted a format
// (nvfp4), an engine (llama.cpp), "train", "prefill", "8 requests". Error(kUsage) says which word is missing.
ClaimExplained explain_claim(std::string_view claim, const Constants& constants);
Document to_json(const ClaimExplained& explained);

}  // namespace yoke::plan
