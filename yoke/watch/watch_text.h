// The board as text: tables for --once, a JSON line for each sample, and the words that screen and tables share.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/report/table.h"
#include "yoke/watch/board.h"

namespace yoke::watch {

// "-" where a value is absent.
std::string percent_text(const std::optional<double>& share);  // of 0 to 1
std::string number_text(const std::optional<int>& value, std::string_view unit);
std::string rate_text(const std::optional<BitsPerSecond>& rate);
std::string local_time_text(double time);                          // "14:03:07"
std::string age_text(double seconds);                              // "12 s", "3 min"
std::string span_text(const TrackedFinding& tracked, double now);  // "since 14:03:07 (12 s)"

report::Table node_table(const Board& board);
report::Table rail_table(const Board& board);
report::Table gpu_table(const Board& board);
report::Table engine_table(const Board& board);
report::Table process_table(const Board& board);
report::Table job_table(const Board& board);

// All tables that have rows, then the findings.
std::string once_text(const Board& board);

// One line for a sample: what the node does, with rates.
Document sample_json(const Board& board, std::size_t node);
Document change_json(const FindingChange& change);
Document board_json(const Board& board);  // all nodes and findings

// Values as one line of `width` characters, the last value at the right. Not given: a blank.
std::string spark_line(const std::vector<double>& values, std::size_t width, bool utf8);

}  // namespace yoke::watch
