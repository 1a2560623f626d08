#include "yoke/link/perftest.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::link {
namespace {

// Four queue pairs: one alone leaves a tenth of a Spark's rail unused.
constexpr int kQueuePairs = 4;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    line = trim(line);
    if (line.empty()) return words;
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <class Number>
Number number_of(const std::string& word) {
  Number value{};
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  bool fits = failure == std::errc{} && end == word.data() + word.size() && value >= 0;
  if constexpr (std::is_floating_point_v<Number>) fits = fits && std::isfinite(value);
  if (!fits) throw Error(ErrorCode::kInvalid, fmt::format("perftest: '{}' is no number", printable(word, 40)));
  return value;
}

// What perftest complains of stands among its notes; the last such line explains most.
std::string complaint_in(std::string_view output) {
  std::string found;
  for (const std::string& line : split(output, '\n')) {
    for (const char* sign : {"ailed", "ouldn't", "rror", "nable", "not found", "No such"}) {
      if (line.find(sign) != std::string::npos) found = std::string(trim(line));
    }
  }
  return found;
}

struct Rows {
  std::string head;
  std::vector<std::vector<std::string>> rows;
};

// Below a line that begins with "#bytes" stand the rows, until something that does not begin with a digit.
Rows rows_below_head(std::string_view output, std::string_view of, std::size_t columns_min) {
  Rows found;
  for (const std::string& line : split(output, '\n')) {
    const std::string_view text = trim(line);
    if (text.starts_with("#bytes")) {
      found = {.head = std::string(text)};
    } else if (!found.head.empty() && !text.empty() && text.front() >= '0' && text.front() <= '9') {
      found.rows.push_back(words_of(text));
      if (found.rows.back().size() < columns_min) {
        throw Error(ErrorCode::kInvalid, fmt::format("perftest: '{}' is no row of a {}", printable(text, 80), of));
      }
    }
  }
  if (found.rows.empty()) {
    const std::string complaint = complaint_in(output);
    throw Error(ErrorCode::kInvalid, complaint.empty()
                                         ? fmt::format("perftest printed no {}", of)
                                         : fmt::format("perftest printed no {}: {}", of, printable(complaint, 160)));
  }
  return found;
}

double bits_per_unit(std::string_view head) {
  if (head.find("[Gb/sec]") != std::string_view::npos) return 1e9;
  if (head.find("[MiB/sec]") != std::string_view::npos || head.find("[MB/sec]") != std::string_view::npos) {
    return 8.0 * 1024 * 1024;  // older releases write MB and mean MiB
  }
  throw Error(ErrorCode::kInvalid, fmt::format("perftest: unknown unit in '{}'", printable(head, 120)));
}

}  // namespace

std::vector<std::string> perftest_argv(const PerftestRun& run) {
  const bool latency = run.kind == PerftestRun::Kind::kLatency;
  std::vector<std::string> argv = {latency ? "ib_write_lat" : "ib_write_bw",
                                   "-d",
                                   run.device,
                                   "-i",
                                   "1",
                                   "-x",
                                   std::to_string(run.gid_index),
                                   "-p",
                                   std::to_string(run.port),
                                   "-s",
                                   std::to_string(run.size),
                                   "-F"};
  if (latency) {
    argv.insert(argv.end(), {"-n", std::to_string(run.count)});
  } else {
    const int seconds = std::max(1, static_cast<int>(std::lround(run.time.value)));
    argv.insert(argv.end(), {"-q", std::to_string(kQueuePairs), "-D", std::to_string(seconds), "--report_gbits"});
    if (run.kind == PerftestRun::Kind::kBandwidthBothWays) argv.emplace_back("-b");
  }
  if (!run.peer.empty()) argv.push_back(run.peer);
  return argv;
}

std::vector<PerftestBandwidth> parse_perftest_bandwidth(std::string_view output) {
  const Rows table = rows_below_head(output, "bandwidth", 4);
  const double unit = bits_per_unit(table.head);
  std::vector<PerftestBandwidth> result;
  for (const std::vector<std::string>& row : table.rows) {
    result.push_back({.size = number_of<std::int64_t>(row[0]),
                      .iterations = number_of<std::int64_t>(row[1]),
                      .average = {number_of<double>(row[3]) * unit}});
  }
  return result;
}

std::vector<PerftestLatency> parse_perftest_latency(std::string_view output) {
  const Rows table = rows_below_head(output, "latency", 8);
  if (table.head.find("t_typical[usec]") == std::string::npos) {
    throw Error(ErrorCode::kInvalid, fmt::format("perftest: unknown columns in '{}'", printable(table.head, 120)));
  }
  std::vector<PerftestLatency> result;
  for (const std::vector<std::string>& row : table.rows) {
    const auto time = [&](std::size_t column) { return Seconds{number_of<double>(row[column]) / 1e6}; };
    result.push_back({.size = number_of<std::int64_t>(row[0]),
                      .iterations = number_of<std::int64_t>(row[1]),
                      .min = time(2),
                      .max = time(3),
                      .typical = time(4),
                      .mean = time(5),
                      .p99 = time(7)});
  }
  return result;
}

}  // namespace yoke::link
