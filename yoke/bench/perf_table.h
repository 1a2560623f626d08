// The table of nccl-tests, byte for byte: head, rows, foot. Scripts that read nccl-tests read this. What yoke adds
// stands in lines that begin with '#', which such scripts skip.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "yoke/bench/core_times.h"
#include "yoke/bench/measure_collective.h"
#include "yoke/bench/verdict.h"

namespace yoke::bench {

// The first of %.2f, %.1f, %.0f, %.1e (%.0e below 7 columns) that fits the width.
std::string fit_number(double value, int width);

std::string table_head(const CollectiveRun& run);  // up to the column titles
std::string table_row(const CollectiveRun& run, const CollectiveRow& row);
// Percentiles, ranks, straggler, comparison, verdict.
std::string table_details(const CollectiveRun& run, const CoresInUse& in_use = {});
std::string table_foot(const CollectiveRun& run);

// Prints as it comes.
class TableSink : public CollectiveSink {
 public:
  explicit TableSink(std::function<void(std::string_view)> print) : print_(std::move(print)) {}
  void begin(const CollectiveRun& run) override {
    before_ = read_core_times();
    print_(table_head(run));
  }
  void row(const CollectiveRun& run, const CollectiveRow& row) override { print_(table_row(run, row)); }
  void end(const CollectiveRun& run) override {
    const CoreTimes after = read_core_times();
    print_(table_details(run, {busy_share(before_, after), after.cores}) + table_foot(run));
  }

 private:
  std::function<void(std::string_view)> print_;
  CoreTimes before_;
};

}  // namespace yoke::bench
