// The table of nccl-tests in a job's output: a slow result without any warning is the proof of the degraded state.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke::check {
namespace {

constexpr std::size_t kMaxTestHosts = 4096;

struct RowWords {
  std::array<std::string_view, 14> words;  // at most: a row has 11 to 13
  std::size_t count = 0;
};

RowWords words_of(std::string_view line) {
  RowWords row;
  for (std::size_t at = line.find_first_not_of(' '); at != std::string_view::npos && row.count < row.words.size();
       at = line.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    row.words[row.count++] = line.substr(at, end - at);
    at = end;
  }
  return row;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = failure == std::errc{} && rest == text.data() + text.size();
  return whole && number >= Number{} ? std::optional(number) : std::nullopt;
}

std::optional<double> rate_in(std::string_view text) {
  const auto number = number_in<double>(text);
  return number && std::isfinite(*number) && *number < 1e6 ? number : std::nullopt;  // GB/s
}

// "#  Rank  0 Group  0 Pid  4711 on    spark-a device  0 [000f:01:00] NVIDIA GB10"
bool read_rank(std::string_view line, spec::NcclTestsResult& tests) {
  const auto host = between(line, " on ", " device ");
  const auto gpu = between(line, "] ", "\n");
  if (line.find(" Rank ") == std::string_view::npos || line.find(" Pid ") == std::string_view::npos || !host || !gpu) {
    return false;
  }
  if (tests.hosts.size() < kMaxTestHosts) tests.hosts.insert(printable(trim(*host), 64));
  if (tests.gpu.empty()) tests.gpu = printable(trim(*gpu), 80);
  return true;
}

// "# Avg bus bandwidth    : 2.83"
bool read_average(std::string_view line, spec::NcclTestsResult& tests) {
  const auto text = between(line, "Avg bus bandwidth", "\n");
  if (!text || text->find(':') == std::string_view::npos) return false;
  const auto rate = rate_in(trim(text->substr(text->find(':') + 1)));
  if (!rate) return false;
  tests.average = BytesPerSecond{*rate * 1e9};
  if (!tests.size) tests.line = printable(trim(line), 200);
  return true;
}

// "  134217728  33554432  float  sum  -1  47391.1  2.83  2.83  0  47345.4  2.83  2.83  0": size, count, type, and at
// the end time, rates and errors, out of place and in place. Between them releases differ.
bool read_row(std::string_view line, spec::NcclTestsResult& tests) {
  if (line.empty() || line.front() < '0' || line.front() > '9') return false;
  const auto [words, number] = words_of(line);
  if (number < 11 || number > 13) return false;
  const auto size = number_in<std::int64_t>(words[0]);
  const auto count = number_in<std::int64_t>(words[1]);
  if (!size || !count) return false;
  const auto time = rate_in(words[number - 4]);
  const auto rate = rate_in(words[number - 6]);
  if (number_in<double>(words[2]) || !time || !rate) return false;
  if (tests.size && *size < tests.size->value) return true;
  tests.size = Bytes{*size};
  tests.bus_bandwidth = BytesPerSecond{*rate * 1e9};
  tests.line = printable(trim(line), 200);
  return true;
}

}  // namespace

bool read_nccl_tests(std::string_view line, spec::NcclTestsResult& tests) {
  if (line.starts_with('#')) return read_rank(line, tests) || read_average(line, tests);
  return read_row(line, tests);
}

}  // namespace yoke::check
