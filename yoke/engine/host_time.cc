#include "yoke/engine/host_time.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/comm/local/local.h"
#include "yoke/engine/messages.h"
#include "yoke/engine/scheduler.h"

namespace yoke::engine {
namespace {

constexpr int kSteps = 400;

// A rank that takes part in the sharing of plans, and computes nothing.
void follow(comm::Communicator& comm) {
  PlanSharing sharing;
  while (sharing.share(comm, std::nullopt).end != PlanEnd::kEngine) {
  }
}

Scheduler busy_scheduler(int rows) {
  Scheduler scheduler({.vocabulary = 1000,
                       .context_max = 4096,
                       .pages = rows * 64,
                       .budget = {.alone = 1 << 20, .with_others = 1 << 20},
                       .sequences_max = rows});
  for (int i = 0; i < rows; ++i) {
    scheduler.submit({.id = static_cast<std::uint64_t>(i), .prompt = {1, i, i}, .answer_max = 2 * kSteps});
  }
  return scheduler;
}

}  // namespace

Seconds measure_host_time(int rows, int ranks) {
  auto comms = comm::local::make_local(ranks);
  std::vector<std::jthread> others;
  for (std::size_t rank = 1; rank < comms.size(); ++rank) others.emplace_back([&, rank] { follow(*comms[rank]); });
  Scheduler scheduler = busy_scheduler(rows);
  PlanSharing sharing;
  EngineMessageReader reader;
  std::vector<double> times;
  for (int step = 0; step < kSteps; ++step) {
    const Instant start = real_clock().now();
    const StepPlan plan = sharing.share(*comms[0], scheduler.next());
    std::vector<RowResult> results;
    for (const PlanRow& row : plan.rows) {
      results.push_back({.slot = row.slot, .made = text::SampledToken{.id = row.slot}, .logits = {}, .error = {}});
    }
    reader.feed(encode(scheduler.take(results)));
    while (reader.next_event()) {
    }
    times.push_back(to_seconds(real_clock().now() - start).value);
  }
  sharing.share(*comms[0], StepPlan{.end = PlanEnd::kEngine});
  std::sort(times.begin(), times.end());
  return Seconds{times[times.size() / 2]};
}

}  // namespace yoke::engine
