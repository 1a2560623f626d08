// The file of --trace: what all ranks did, on one clock, in the format that ui.perfetto.dev and chrome://tracing open.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/why/trace_parts.h"

namespace yoke::bench {

inline constexpr const char* kTraceHelp = "write what each rank did and when, for ui.perfetto.dev";

// Error where the file cannot be written, seen before anything is measured. An empty name is none.
void check_trace_file(const std::filesystem::path& file);

std::string trace_json(const std::vector<why::RankParts>& ranks);

class WrittenTrace {
 public:
  // Writes the file. Error(kUnavailable) where no rank gave a trace.
  WrittenTrace(std::filesystem::path file, const std::vector<spec::RankTrace>& traces);

  // A line for each rank: which part of the time it computed, waited and moved data; and how well the clocks agree.
  std::string text() const;
  Document summary() const;

 private:
  std::filesystem::path file_;
  std::vector<why::RankParts> ranks_;
};

}  // namespace yoke::bench
