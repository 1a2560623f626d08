// Measurements as pictures and as one HTML page. Pure: files are the caller's.
#pragma once
#include <vector>

#include "yoke/bench/collective_run.h"
#include "yoke/bench/run_record.h"
#include "yoke/report/chart.h"
#include "yoke/report/html.h"

namespace yoke::bench {

// Bus bandwidth over size, with the link's limit where it is known.
report::LineChart bandwidth_chart(const CollectiveRun& run);

inline constexpr const char* kReportTitle = "Measurements by yoke";  // by which a page of before is known

// Runs newest first, each with its facts, a chart and a table.
report::HtmlPage report_page(const std::vector<RunRecord>& records);

}  // namespace yoke::bench
