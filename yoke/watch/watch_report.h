// A record as a page: what was watched, for how long, findings with their times, idle time, and a plot of each value.
#pragma once
#include <string>

#include "yoke/report/html.h"
#include "yoke/watch/board.h"
#include "yoke/watch/record_reader.h"

namespace yoke::watch {

report::HtmlPage report_page(RecordReader record);
// For a page of somebody else's: plots of rails, tokens and memory with a mark where a finding begins, and the
// findings. Times are in minutes from the first observation.
std::vector<report::HtmlBlock> report_strip(RecordReader record);

}  // namespace yoke::watch
