// The table of nccl-tests in a job's output: a slow result without any warning is the proof of the degraded state.
#include <charconv>
#include <cmath>
#include <vector>

#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke {
namespace {

constexpr std::size_t kTestHostsMost = 4096;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : split(line, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
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
bool read_rank(std::string_view line, NcclTestsResult& tests) {
  const auto host = between(line, " on ", " device ");
  const auto gpu = between(line, "] ", "\n");
  if (line.find(" Rank ") == std::string_view::npos || line.find(" Pid ") == std::string_view::npos || !host || !gpu) {
    return false;
  }
  if (tests.hosts.size() < kTestHostsMost) tests.hosts.insert(printable(trim(*host), 64));
  if (tests.gpu.empty()) tests.gpu = printable(trim(*gpu), 80);
  return true;
}

// "# Avg bus bandwidth    : 2.83"
bool read_average(std::string_view line, NcclTestsResult& tests) {
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
bool read_row(std::string_view line, NcclTestsResult& tests) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() < 11 || words.size() > 13) return false;
  const auto size = number_in<std::int64_t>(words[0]);
  const auto count = number_in<std::int64_t>(words[1]);
  const auto time = rate_in(words[words.size() - 4]);
  const auto rate = rate_in(words[words.size() - 6]);
  if (!size || !count || number_in<double>(words[2]) || !time || !rate) return false;
  if (tests.size && *size < tests.size->value) return true;
  tests.size = Bytes{*size};
  tests.bus_bandwidth = BytesPerSecond{*rate * 1e9};
  tests.line = printable(trim(line), 200);
  return true;
}

}  // namespace

bool read_nccl_tests(std::string_view line, NcclTestsResult& tests) {
  if (line.starts_with('#')) return read_rank(line, tests) || read_average(line, tests);
  return read_row(line, tests);
}

}  // namespace yoke
