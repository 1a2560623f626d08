// One measurement as the history keeps it, whatever was measured: who, when, with which program and settings, and rows
// of one number each with its spread.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/collective_run.h"

namespace yoke::bench {

struct RecordRow {
  std::string name;       // "float sum out-of-place", "read, all cores"
  std::int64_t size = 0;  // bytes; 0 where there is no size
  double value = 0;       // the median
  double low = 0;         // quartiles
  double high = 0;
  std::string unit;                      // "us": less is better; "GB/s", "GFLOP/s", "tok/s": more is
  std::optional<double> predicted = {};  // what the plan expected, in the same unit
  friend bool operator==(const RecordRow&, const RecordRow&) = default;
};

bool less_is_better(const RecordRow& row);

std::string plain_number(double value);  // three digits, and never 1.25e+03: "0.0812", "41.9", "1250"

// The key of settings under which a run keeps what its steps were made of, for 'yoke why'.
inline constexpr const char* kAccountKey = "why";

struct RunRecord {
  std::int64_t id = 0;    // given by the history
  std::string time;       // 2026-11-15T09:30:00Z
  std::string benchmark;  // "all-reduce", "memory"
  std::string host;
  std::string processor;
  std::string version;
  std::string commit;
  std::string settings;  // JSON
  std::string summary;   // one line for lists
  std::vector<RecordRow> rows;
};

// Filled with this machine, this program and the time; rows and settings are the caller's.
RunRecord new_record(std::string benchmark, const Document& settings);
RunRecord record_of(const CollectiveRun& run, const std::string& cluster = "");

Document to_json(const RunRecord& record);
void from_json(const Document& document, RunRecord& record);  // throws Error(kInvalid)

}  // namespace yoke::bench
