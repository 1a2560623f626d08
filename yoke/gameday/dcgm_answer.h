// How `dcgmi diag -j` is run on a node, and what it answers, read into one list: the forms of DCGM 3 ("DCGM GPU
// Diagnostic") and 4 ("DCGM Diagnostic"), with whatever its programs print before the JSON.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::gameday {

enum class DcgmStatus { kPass, kWarn, kFail, kSkip };

struct DcgmTest {
  std::string name;                       // "PCIe", "memory"
  DcgmStatus status = DcgmStatus::kPass;  // the worst of all GPUs
  std::vector<std::string> says;          // warnings, with the GPU that they are about
};

struct DcgmAnswer {
  std::vector<DcgmTest> tests;
  std::string problem;  // why there is no result; empty: there is one

  bool passed() const;  // a test ran, and none failed
  int count(DcgmStatus status) const;
};

// What a shell runs. A diagnostic that hangs is asked to end at the limit, is killed after the grace, and has no result
// then, whatever it has printed.
struct DcgmRun {
  int level = 1;
  Seconds limit, grace = Seconds{10};
};
std::string dcgm_script(const DcgmRun& run);

bool has_no_dcgm(std::string_view text);  // dcgmi is not installed
DcgmAnswer read_dcgm(std::string_view text);

// What `yoke job run` printed, one text for each node: lines are "NODE/RANK | what the program said".
std::map<std::string, std::string> lines_by_node(std::string_view output);

}  // namespace yoke::gameday
