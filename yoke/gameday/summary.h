// A game day in one screen of text, and as one HTML page. Pure: files are the caller's.
#pragma once
#include <string>

#include "yoke/gameday/result.h"
#include "yoke/report/html.h"

namespace yoke::gameday {

std::string summary_text(const GamedayResult& result);
report::HtmlPage gameday_page(const GamedayResult& result);

}  // namespace yoke::gameday
