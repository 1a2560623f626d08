#include "yoke/why/evaluate_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace yoke::why {
namespace {

constexpr double kTrafficMin = 1e6;  // bytes a second over the best rail, for others to be judged by it
constexpr double kNothing = 0.01;    // of the best rail
constexpr double kLittle = 0.4;      // of the best rail
constexpr double kFullCache = 0.95;
constexpr double kHeldDown = 0.1;  // of the time
constexpr double kGpuBusyMin = 0.2;
constexpr double kPromptShare = 0.3;  // of a step
constexpr double kErrorsMin = 10;

bool is_working(const WatchedEngine& engine) { return engine.tokens_per_second > 0; }

// Both rails of a node carry the same in tensor parallelism: data is spread over all of them.
void find_idle_rails(const EngineQuestion& q, Answer& answer) {
  std::map<std::string, double> best;
  for (const WatchedRail& rail : q.rails) {
    if (!rail.rail.empty()) best[rail.node] = std::max(best[rail.node], rail.bytes_per_second);
  }
  for (const WatchedRail& rail : q.rails) {
    const double most = best[rail.node];
    if (rail.rail.empty() || most < kTrafficMin || rail.bytes_per_second >= kLittle * most) continue;
    const bool is_nothing = rail.bytes_per_second < kNothing * most || !rail.is_up;
    answer.blames.push_back(
        {.cause = is_nothing ? Cause::kRailUnused : Cause::kRailSlow,
         .term = "all-reduce",
         .what = is_nothing ? fmt::format("Rail {} of {} carries nothing.", rail.rail, rail.node)
                            : fmt::format("Rail {} of {} carries less than the other.", rail.rail, rail.node),
         .evidence = fmt::format("{} moved {} while another rail of the node moved {}{}.", rail.interface,
                                 rate_text(8 * rail.bytes_per_second), rate_text(8 * most),
                                 rail.is_up ? "" : "; the interface is down"),
         .next = "yoke check" + q.options,
         .where = {rail.node, "rail " + rail.rail}});
  }
}

void find_rail_errors(const EngineQuestion& q, Answer& answer) {
  for (const WatchedRail& rail : q.rails) {
    const double all = rail.errors + rail.retransmits + rail.discards;
    if (all < kErrorsMin) continue;
    answer.blames.push_back(
        {.cause = Cause::kPacketLoss,
         .term = "all-reduce",
         .what = fmt::format("Rail {} of {} loses packets.", rail.rail, rail.node),
         .evidence = fmt::format("{:.0f} errors, {:.0f} discarded, {:.0f} sent again in {}.", rail.errors,
                                 rail.discards, rail.retransmits, time_text(q.engine.seconds)),
         .next = "yoke link test" + q.options,
         .where = {rail.node, "rail " + rail.rail}});
  }
}

void find_held_gpus(const EngineQuestion& q, Answer& answer) {
  for (const WatchedGpu& gpu : q.gpus) {
    if (gpu.held_down < kHeldDown || gpu.busy < kGpuBusyMin) continue;
    answer.blames.push_back(
        {.cause = Cause::kGpuClock,
         .term = "weights",
         .what = fmt::format("The clock of GPU {} of {} is held down.", gpu.index, gpu.node),
         .evidence = fmt::format("For {:.0f}% of the time{}{}.", 100 * gpu.held_down,
                                 gpu.clock_limits.empty() ? "" : ": ", fmt::join(gpu.clock_limits, ", ")),
         .next = "yoke watch" + q.options,
         .where = {gpu.node}});
  }
}

void find_queue(const EngineQuestion& q, Answer& answer) {
  const WatchedEngine& e = q.engine;
  const bool is_full = e.cache_usage.value_or(0) > kFullCache;
  if (e.preemptions.value_or(0) > 0 || (is_full && e.waiting.value_or(0) > 0)) {
    answer.blames.push_back(
        {.cause = Cause::kCacheFull,
         .term = "waiting",
         .what = "The cache of keys and values is full: requests wait for room in it.",
         .evidence = fmt::format(
             "{:.0f}% of it is used, {:.0f} requests wait{}.", 100 * e.cache_usage.value_or(0), e.waiting.value_or(0),
             e.preemptions.value_or(0) > 0 ? fmt::format(", {:.0f} were set back", *e.preemptions) : std::string()),
         .next = "yoke plan MODEL --requests N --context N" + q.options,
         .where = {}});
  } else if (e.waiting.value_or(0) >= 1 && e.waiting.value_or(0) > e.running.value_or(0)) {
    answer.blames.push_back(
        {.cause = Cause::kQueue,
         .term = "waiting",
         .what = "Requests wait for their turn.",
         .evidence = fmt::format("{:.0f} wait, {:.0f} run, and {:.0f}% of the cache is used.", e.waiting.value_or(0),
                                 e.running.value_or(0), 100 * e.cache_usage.value_or(0)),
         .next = "yoke plan MODEL --requests N" + q.options,
         .where = {}});
  }
}

double prompt_share(const EngineQuestion& q) {
  if (!q.planned || q.planned->prefill_rate <= 0) return 0;
  return q.engine.prompt_tokens_per_second.value_or(0) / q.planned->prefill_rate;
}

void find_prompts(const EngineQuestion& q, Answer& answer) {
  const double share = prompt_share(q);
  if (share < kPromptShare) return;
  answer.blames.push_back(
      {.cause = Cause::kPrompts,
       .term = "prompts",
       .what = "Prompts of other requests are read between the tokens.",
       .evidence = fmt::format("{:.0f} tokens/s of prompts come in; reading them takes about {:.0f}% of the time.",
                               q.engine.prompt_tokens_per_second.value_or(0), 100 * std::min(share, 1.0)),
       .next = "yoke plan MODEL --prompt N" + q.options,
       .where = {}});
}

void add_engine_table(const EngineQuestion& q, Answer& answer) {
  const double running = std::max(1.0, q.engine.running.value_or(1));
  StepTable table{.title = "a step that makes tokens",
                  .seconds = running / q.engine.tokens_per_second,
                  .tokens = running,
                  .rows = {}};
  if (q.planned) {
    const PlannedStep& step = q.planned->step;
    // An engine tells the whole step only: its terms are the plan's.
    for (const auto& [name, value] :
         {std::pair{"weights", step.weights}, std::pair{"cache", step.cache}, std::pair{"fixed cost", step.fixed},
          std::pair{"all-reduce", step.exchange}, std::pair{"prompts", q.planned->prompts}}) {
      if (value <= 0) continue;
      table.rows.push_back({.name = name,
                            .measured = 0,
                            .share = 0,
                            .expected = Expectation{value, value / 2, value * 2, "plan"},
                            .detail = "only the whole step is measured"});
    }
    const double low = running / q.planned->high, high = running / q.planned->low;
    table.rows.push_back({.name = "whole step",
                          .measured = table.seconds,
                          .share = 1,
                          .expected = Expectation{running / q.planned->rate, low, high, "plan"}});
  }
  answer.steps.push_back(std::move(table));
}

void find_slow_step(const EngineQuestion& q, Answer& answer) {
  if (!q.planned || !answer.blames.empty() || q.engine.tokens_per_second >= q.planned->low) return;
  const PlannedStep& step = q.planned->step;
  const double most = std::max({step.weights, step.cache, step.fixed, step.exchange});
  const bool is_exchange = most == step.exchange;
  answer.blames.push_back(
      {.cause = Cause::kRateOff,
       .term = "whole step",
       .what =
           fmt::format("{:.3g} tokens/s are made, {:.3g} were expected.", q.engine.tokens_per_second, q.planned->rate),
       .evidence =
           fmt::format("The plan's interval ends at {:.3g}; its longest term is {} ({} of a step). Rails, GPUs and "
                       "the queue show nothing.",
                       q.planned->low,
                       is_exchange            ? "the all-reduce"
                       : most == step.weights ? "reading the weights"
                       : most == step.cache   ? "reading the cache"
                                              : "the fixed cost",
                       time_text(most)),
       .next = (is_exchange ? "yoke link test" : "yoke check") + q.options,
       .where = {}});
}

void add_engine_limit(const EngineQuestion& q, Answer& answer) {
  if (!q.planned) return;
  const PlannedStep& step = q.planned->step;
  const double most = std::max({step.weights, step.cache, step.fixed, step.exchange, q.planned->prompts});
  answer.limit = most == step.weights    ? "memory bandwidth: reading the weights is the longest term of a step"
                 : most == step.cache    ? "memory bandwidth: reading keys and values is the longest term of a step"
                 : most == step.fixed    ? "the fixed cost of each layer is the longest term of a step"
                 : most == step.exchange ? "the link: the all-reduce is the longest term of a step"
                                         : "arithmetic: prompts are the longest term of a step";
}

}  // namespace

Answer evaluate_engine(const EngineQuestion& question) {
  Answer answer{.subject = question.subject, .steps = {}, .blames = {}, .limit = {}, .notes = {}};
  find_queue(question, answer);
  find_idle_rails(question, answer);
  find_rail_errors(question, answer);
  find_held_gpus(question, answer);
  if (!question.engine.is_counted) {
    answer.notes.push_back(
        fmt::format("The metrics of this {} count no tokens under the names that yoke knows: it may be of "
                    "another version. Only rails, GPUs and the queue were judged.",
                    question.engine.kind));
    return answer;
  }
  if (!is_working(question.engine)) {
    answer.notes.push_back(fmt::format("The engine made no token in {}: send it requests while it is watched.",
                                       time_text(question.engine.seconds)));
    return answer;
  }
  find_prompts(question, answer);
  add_engine_table(question, answer);
  find_slow_step(question, answer);
  if (answer.blames.empty()) add_engine_limit(question, answer);
  if (!question.planned) answer.notes.emplace_back("There is no plan of this model: give its name with --model.");
  return answer;
}

}  // namespace yoke::why
