#include "yoke/link/perftest_run.h"

#include <future>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/process.h"

namespace yoke::link {

template <class Visitor>
void visit_fields(Visitor& visit, PerftestRequest& request) {
  visit.required("commands", request.commands);
  visit.required("limit", request.limit);
}

template <class Visitor>
void visit_fields(Visitor& visit, PerftestOutput& output) {
  visit.required("ok", output.ok);
  visit.required("text", output.text);
}

namespace {

constexpr Seconds kStartLimit{3};
constexpr Seconds kAgainAfter{0.2};

PerftestOutput run_one(const std::vector<std::string>& argv, Seconds limit) {
  const Deadline start_limit = Deadline::after(kStartLimit);
  while (true) {
    const Outcome outcome = run({.argv = argv, .timeout = limit, .output_limit = {64 << 10}});
    if (outcome.ok() || outcome.timed_out || start_limit.expired()) {
      return {.ok = outcome.ok(), .text = outcome.out + outcome.err};
    }
    real_clock().sleep(kAgainAfter);
  }
}

}  // namespace

std::vector<PerftestOutput> run_perftests(const PerftestRequest& request) {
  for (const std::vector<std::string>& argv : request.commands) {
    const bool known = !argv.empty() && (argv.front() == "ib_write_bw" || argv.front() == "ib_write_lat");
    if (!known) throw Error(ErrorCode::kInvalid, "only perftest is run here");
  }
  std::vector<std::future<PerftestOutput>> running;
  for (const std::vector<std::string>& argv : request.commands) {
    running.push_back(std::async(std::launch::async, run_one, argv, request.limit));
  }
  std::vector<PerftestOutput> outputs;
  for (auto& one : running) outputs.push_back(one.get());
  return outputs;
}

Document to_json(const PerftestRequest& request) { return write_fields(request); }
void from_json(const Document& document, PerftestRequest& request) { read_fields(document, request); }
Document to_json(const PerftestOutput& output) { return write_fields(output); }
void from_json(const Document& document, PerftestOutput& output) { read_fields(document, output); }

}  // namespace yoke::link
