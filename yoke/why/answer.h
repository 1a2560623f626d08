// "Why am I slow?", answered: the terms of a step as they were expected and as they were measured, which of them is
// off, and what to do next. Plain data; the judges of this folder fill it, and answer_text.h prints it. Times are
// seconds.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::why {

// What a term was expected to be. `high` is the most that is still healthy.
struct Expectation {
  double value = 0;
  double low = 0;
  double high = 0;
  std::string source;  // "plan, calibrated", "5 healthy runs"
};

struct TermRow {
  std::string name;     // "weights", "all-reduce", "waiting"
  double measured = 0;  // of one step
  double share = 0;     // of the step
  std::optional<Expectation> expected = {};
  std::string detail = {};  // "41.9 GB/s", "34 of 2.0 KB"
};

// One kind of step.
struct StepTable {
  std::string title;  // "decode"
  double seconds = 0;
  double tokens = 1;  // of a step
  std::vector<TermRow> rows;
};

enum class Cause {
  kRailUnused,
  kRailSlow,
  kRailRoute,
  kSmallPackets,
  kPacketLoss,
  kTransport,
  kQuota,
  kLoad,
  kSlowRank,
  kSmallPages,
  kTermOff,
  kQueue,
  kCacheFull,
  kPrompts,
  kGpuClock,
  kRateOff,
};
constexpr auto enum_names(Cause) {
  return std::array{std::pair{"rail-unused", Cause::kRailUnused},
                    std::pair{"rail-slow", Cause::kRailSlow},
                    std::pair{"rail-route", Cause::kRailRoute},
                    std::pair{"small-packets", Cause::kSmallPackets},
                    std::pair{"packet-loss", Cause::kPacketLoss},
                    std::pair{"transport", Cause::kTransport},
                    std::pair{"quota", Cause::kQuota},
                    std::pair{"load", Cause::kLoad},
                    std::pair{"slow-rank", Cause::kSlowRank},
                    std::pair{"small-pages", Cause::kSmallPages},
                    std::pair{"term-off", Cause::kTermOff},
                    std::pair{"queue", Cause::kQueue},
                    std::pair{"cache-full", Cause::kCacheFull},
                    std::pair{"prompts", Cause::kPrompts},
                    std::pair{"gpu-clock", Cause::kGpuClock},
                    std::pair{"rate-off", Cause::kRateOff}};
}

struct Blame {
  Cause cause = Cause::kTermOff;
  std::string term;                // which row it makes longer
  std::string what;                // one sentence
  std::string evidence;            // the values behind it
  std::string next;                // a command to paste; empty: none
  std::vector<std::string> where;  // nodes and rails: "spark-2", "rail B"
};

struct Answer {
  std::string subject;  // "run 12: nano, 2 ranks, 2026-11-18 12:00"
  std::vector<StepTable> steps;
  std::vector<Blame> blames;  // the most certain first; empty: nothing is off
  std::string limit;          // what the step is made of most, where nothing is off
  std::vector<std::string> notes;
};

Document to_json(const Answer& answer);
std::string answer_text(const Answer& answer);

// "1.25 ms", "310 us", "2.1 s", for sentences.
std::string time_text(double seconds);
std::string rate_text(double bits_per_second);

}  // namespace yoke::why
