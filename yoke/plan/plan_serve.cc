// Serving: which layouts fit, which is fastest, and how fast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/plan/planner.h"
#include "yoke/plan/serve_advice.h"
#include "yoke/plan/serve_layouts.h"
#include "yoke/plan/validate.h"

namespace yoke::plan {
namespace {

constexpr std::size_t kLayoutsShown = 3;
constexpr double kSkewLow = 0.7;  // what the two ends of published rows fit
constexpr double kSkewHigh = 1.0;
constexpr double kYokeChunk = 128;         // tokens of a prompt that yoke's engine reads at once, usually
constexpr double kContextShrunkMin = 256;  // yoke's engine takes no smaller cache than this

void add_step(Plan& plan, const StepTime& step) {
  for (const auto& [part, seconds] : {std::pair{"weights", step.weights}, std::pair{"cache", step.cache},
                                      std::pair{"launches", step.fixed}, std::pair{"arithmetic", step.arithmetic},
                                      std::pair{"exchange", step.exchange}, std::pair{"other prompts", step.prompts}}) {
    if (seconds > 0) plan.step.push_back({part, seconds});
  }
}

// Routing skew is not known: both of its ends widen the interval of a mixture under load.
void widen_for_skew(Estimate& estimate, const ServeCase& c, const Constants& k) {
  if (c.model.experts == 0 || c.batch < 2) return;
  Constants ends = k;
  ends.set(Constant::kRoutingSkew, kSkewHigh);
  estimate.low = std::min(estimate.low, decode_rate(c, ends) / 1.2);
  ends.set(Constant::kRoutingSkew, kSkewLow);
  estimate.high = std::max(estimate.high, decode_rate(c, ends) * 1.2);
}

void add_power(Plan& plan, const Request& request, double rate, const Constants& k) {
  const spec::HardwareFacts& facts = *request.machines.facts;
  // Decoding keeps memory busy and arithmetic idle: what was measured as "serving" on a Spark; two thirds elsewhere.
  const double use = request.machines.kind == HardwareClass::kGb10 ? 1.0 : 0.65;
  const double watts =
      request.machines.nodes * (facts.idle_power.value + use * (facts.load_power.value - facts.idle_power.value));
  k.forget_used();
  plan.estimates.push_back(estimate_of("power", watts, "W", "power", 1, k));
  plan.estimates.back().provenance = fmt::format("catalogue: {}", facts.load_power.source);
  plan.estimates.push_back(estimate_of("tokens per joule", rate / watts, "tok/J", "power", 1.2, k));
}

void add_estimates(Plan& plan, const Request& request, const Layout& layout, const Constants& k) {
  const double doubt = doubt_of(request);
  ServeCase c = serve_case(request, layout);
  k.forget_used();
  const double prefill = prefill_seconds(c, request.prompt, 0, k);
  plan.estimates.push_back(estimate_of("prefill", request.prompt / prefill, "tok/s", "prefill", doubt, k));
  if (request.embeddings) {
    // Every token of a text is read once, as of a prompt; what is made of its states costs nothing beside that.
    plan.estimates.push_back(estimate_of(fmt::format("embeddings of {:.0f} tokens", request.prompt), 1 / prefill, "/s",
                                         "prefill", doubt, k));
  }
  ServeCase alone = c;
  alone.batch = 1;
  const double first = prefill_seconds(alone, request.prompt, 0, k) + decode_step(alone, k).total();
  plan.estimates.push_back(estimate_of("time to first token", first, "s", "prefill", doubt, k));
  const double single = decode_rate(alone, k);
  plan.estimates.push_back(estimate_of("decode, one request", single, "tok/s", "decode", doubt, k));
  double rate = single;
  if (request.concurrency > 1) {
    rate = decode_rate(c, k);
    plan.estimates.push_back(
        estimate_of(fmt::format("decode, {:.0f} requests", request.concurrency), rate, "tok/s", "aggregate", doubt, k));
    widen_for_skew(plan.estimates.back(), c, k);
  }
  const StepTime step = decode_step(c, k);
  if (step.exchange > 0) {
    plan.estimates.push_back(
        estimate_of("exchange share of a step", 100 * step.exchange / step.total(), "%", "collectives", doubt, k));
  }
  add_power(plan, request, rate, k);
}

}  // namespace

ServeCase serve_case(const Request& request, const Layout& layout) {
  ServeCase c;
  c.model = request.model;
  c.format = request.format;
  c.file_bytes = request.file_bytes;
  c.rank_weights = request.rank_weights;
  c.engine = request.engine;
  if (c.engine == Engine::kYoke) c.chunk = kYokeChunk;
  c.machines = request.machines;
  c.layout = layout;
  c.batch = request.concurrency;
  c.context = request.context;
  c.prompt = request.prompt;
  c.generated = request.generated;
  c.cache_bytes = request.cache_bytes;
  c.draft = request.draft;
  c.acceptance = request.acceptance;
  return c;
}

namespace {

// The longest context that some layout has room for, where the asked one does not fit and may shrink.
Request with_context_that_fits(const Request& request) {
  double longest = 0;
  for (const Layout& layout : possible_layouts(request)) {
    longest = std::max(longest, longest_context(serve_case(request, layout)));
  }
  if (longest >= request.context || longest < std::min(kContextShrunkMin, request.context)) return request;
  Request shrunk = request;
  shrunk.context = longest;
  shrunk.prompt = std::min(request.prompt, longest);
  return shrunk;
}

}  // namespace

Plan plan_serve(const Request& asked, const Constants& k) {
  const Request request = asked.context_may_shrink ? with_context_that_fits(asked) : asked;
  std::vector<Scored> fitting;
  std::optional<Scored> least_bad;
  for (const Layout& layout : possible_layouts(request)) {
    Scored scored = score(request, layout, k);
    if (scored.planned.memory.fits()) {
      fitting.push_back(std::move(scored));
    } else if (!least_bad || scored.planned.memory.left() > least_bad->planned.memory.left()) {
      least_bad = std::move(scored);
    }
  }
  if (fitting.empty() && !least_bad) refuse_ranks(request);
  Plan plan;
  plan.fits = !fitting.empty();
  plan.context = request.context;
  if (request.context < asked.context) {
    plan.warnings.push_back(
        fmt::format("The context is {:.0f} tokens, as many as memory allows: yoke's engine "
                    "decides so where no --context is given.",
                    request.context));
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Scored& a, const Scored& b) { return a.planned.score > b.planned.score; });
  if (!plan.fits) fitting.push_back(std::move(*least_bad));
  const Scored best = fitting.front();
  for (std::size_t i = 0; i < std::min(fitting.size(), kLayoutsShown); ++i) {
    fitting[i].planned.why = i == 0 ? winner_because(best, request) : behind_because(best, fitting[i]);
    plan.layouts.push_back(fitting[i].planned);
  }
  const ServeCase c = serve_case(request, best.planned.layout);
  plan.context_max = longest_context(c);
  plan.sequences_max = most_sequences(c);
  add_step(plan, best.step);
  add_estimates(plan, request, best.planned.layout, k);
  suggest_changes(plan, request, best.planned.layout, k);
  warn(plan, request, best, k);
  return plan;
}

}  // namespace yoke::plan
