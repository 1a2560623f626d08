// Measurements as pictures and as one HTML page. Pure: files are the caller's.
#pragma once
#include <vector>

#include "yoke/bench/collective_run.h"
#include "yoke/bench/run_record.h"
#include "yoke/report/chart.h"
#include "yoke/report/html.h"

namespace yoke {

// Bus bandwidth over size, with the link's limit where it is known.
LineChart bandwidth_chart(const CollectiveRun& run);

// Runs newest first, each with its facts, a chart and a table.
HtmlPage report_page(const std::vector<RunRecord>& records);

}  // namespace yoke
