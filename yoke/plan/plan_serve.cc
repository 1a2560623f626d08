// Serving: which layouts are possible, which fit, which is fastest, and why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/units.h"
#include "yoke/plan/planner.h"
#include "yoke/plan/validate.h"

namespace yoke::plan {
namespace {

constexpr std::size_t kLayoutsShown = 3;
constexpr double kSkewLow = 0.7;  // planner notes 5: what the two ends of published rows fit
constexpr double kSkewHigh = 1.0;

bool divides_heads(const ModelFacts& model, int ranks) {
  const bool shares_cache = model.latent || model.kv_heads % ranks == 0 || ranks % model.kv_heads == 0;
  return model.heads % ranks == 0 && shares_cache;
}

std::vector<int> tensor_sizes(const ModelFacts& model, int most) {
  std::vector<int> sizes;
  for (int ranks = 1; ranks <= std::min(most, 1024); ++ranks) {
    if (divides_heads(model, ranks)) sizes.push_back(ranks);
  }
  return sizes;
}

void refuse_tensor(const Request& request) {
  if (request.tensor <= 1 || divides_heads(request.model, request.tensor)) return;
  const std::vector<int> sizes = tensor_sizes(request.model, std::max(request.machines.gpus(), 16));
  throw Error(ErrorCode::kUsage,
              fmt::format("tensor parallelism of {} does not divide the {} heads ({} key-value heads) of {}",
                          request.tensor, request.model.heads, request.model.kv_heads, request.model.name),
              fmt::format("{} would; --pp {} splits by layers instead", fmt::join(sizes, ", "), request.tensor));
}

std::vector<Layout> possible_layouts(const Request& request) {
  const int gpus = request.machines.gpus();
  const bool is_fixed = request.tensor > 0 || request.pipeline > 0 || request.replicas > 0;
  if (is_fixed) {
    Layout layout{.tensor = std::max(request.tensor, 1),
                  .pipeline = std::max(request.pipeline, 1),
                  .replicas = std::max(request.replicas, 1)};
    return {layout};
  }
  std::vector<Layout> layouts;
  for (int tensor = 1; tensor <= std::min(gpus, 1024); ++tensor) {
    if (gpus % tensor != 0 || !divides_heads(request.model, tensor)) continue;
    const bool crosses = tensor > request.machines.gpus_per_node;
    if (crosses && (tensor % request.machines.gpus_per_node != 0 || request.engine == Engine::kLlamaCpp)) continue;
    if (!crosses && request.machines.gpus_per_node % tensor != 0) continue;
    for (int pipeline = 1; pipeline <= gpus / tensor && pipeline <= request.model.layers && pipeline <= 64;
         ++pipeline) {
      if ((gpus / tensor) % pipeline != 0) continue;
      Layout layout{.tensor = tensor, .pipeline = pipeline, .replicas = gpus / tensor / pipeline};
      layouts.push_back(layout);
      // Experts spread over the replicas of a server's worth of GPUs or of all of them.
      const int ranks = tensor * layout.replicas;
      if (request.model.experts > 0 && layout.replicas > 1 && pipeline == 1 && request.model.experts % ranks == 0) {
        layout.experts = ranks;
        layouts.push_back(layout);
      }
    }
  }
  return layouts;
}

struct Scored {
  PlannedLayout planned;
  StepTime step;
  double prompt = 0;  // seconds to read one
};

Scored score(const Request& request, const Layout& layout, const Constants& k) {
  const ServeCase c = serve_case(request, layout);
  Scored scored;
  scored.planned.layout = layout;
  scored.planned.name = layout_name(layout);
  scored.planned.memory = serve_memory(c, request.context, std::max(request.concurrency, 1.0));
  scored.step = decode_step(c, k);
  // All requests' answers, and their prompts, which a replica reads one after the other.
  const double requests = std::max(request.concurrency, 1.0);
  scored.prompt = prefill_seconds(c, request.prompt, 0, k);
  ServeCase decoding = c;
  decoding.prompt = 0;
  const double seconds =
      scored.prompt * std::ceil(requests / layout.replicas) + request.generated * requests / decode_rate(decoding, k);
  scored.planned.score = requests * request.generated / seconds;
  return scored;
}

std::string milliseconds(double seconds) { return to_string(Seconds{seconds}); }

// Why the first is ahead of the other: the term that differs most.
std::string behind_because(const Scored& best, const Scored& other) {
  struct Difference {
    double seconds;
    std::string text;
  };
  const std::vector<Difference> differences = {
      {other.step.weights - best.step.weights,
       fmt::format("each step reads weights for {} instead of {}", milliseconds(other.step.weights),
                   milliseconds(best.step.weights))},
      {other.step.exchange - best.step.exchange,
       fmt::format("exchange between ranks takes {} of a step instead of {}", milliseconds(other.step.exchange),
                   milliseconds(best.step.exchange))},
      {other.step.cache - best.step.cache, fmt::format("reading the cache takes {} instead of {}",
                                                       milliseconds(other.step.cache), milliseconds(best.step.cache))}};
  const auto largest = std::max_element(differences.begin(), differences.end(),
                                        [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (other.prompt > 1.5 * best.prompt) {
    return fmt::format("reading a prompt takes {} instead of {}", milliseconds(other.prompt),
                       milliseconds(best.prompt));
  }
  if (largest->seconds > 0.02 * best.step.total()) return largest->text;
  if (other.planned.layout.pipeline > best.planned.layout.pipeline) {
    return "requests and prompts pass all stages in turn";
  }
  return "its replicas are not filled by the requests asked for";
}

std::string winner_because(const Scored& best, const Request& request) {
  const double total = best.step.total();
  const double exchange = 100 * best.step.exchange / total;
  const double weights = 100 * best.step.weights / total;
  std::string text =
      fmt::format("{:.0f}% of a step reads weights, {:.0f}% is exchange between ranks", weights, exchange);
  if (best.planned.layout.tensor > 1) {
    text += fmt::format(" ({} all-reduces of {})", 2 * request.model.layers,
                        to_string(Seconds{best.step.exchange / (2 * static_cast<double>(request.model.layers))}));
  }
  return text;
}

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
  const HardwareFacts& facts = *request.machines.facts;
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
  plan.estimates.push_back(
      estimate_of("exchange share of a step", 100 * step.exchange / step.total(), "%", "collectives", doubt, k));
  add_power(plan, request, rate, k);
}

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }

bool would_fit(const Request& request, const Constants& k) {
  for (const Layout& layout : possible_layouts(request)) {
    if (score(request, layout, k).planned.memory.fits()) return true;
  }
  return false;
}

void suggest_changes(Plan& plan, const Request& request, const Layout& layout, const Constants& k) {
  const ServeCase c = serve_case(request, layout);
  if (plan.fits) {
    if (request.cache_bytes > 1 && plan.context_max < static_cast<double>(request.model.context)) {
      ServeCase narrow = c;
      narrow.cache_bytes = 1;
      const double more = longest_context(narrow) - plan.context_max;
      if (more >= 1024)
        plan.changes.push_back(fmt::format("an FP8 cache: {:.0f}k more tokens of context", more / 1024));
    }
    return;
  }
  if (const double context = longest_context(c); context >= 256) {
    plan.changes.push_back(fmt::format("--context {:.0f}: the longest that fits as {}", std::floor(context / 256) * 256,
                                       layout_name(layout)));
  }
  for (const std::string_view name : {"fp8", "nvfp4", "int4"}) {
    const WeightFormat& format = *find_format(name);
    if (format.linear_bits >= request.format.linear_bits) continue;
    if (name == "nvfp4" && request.machines.gpu.fp4 == 0) continue;
    Request narrow = request;
    narrow.format = format;
    narrow.file_bytes = 0;
    if (!would_fit(narrow, k)) continue;
    plan.changes.push_back(fmt::format("--format {}: {} of weights instead of {}", name,
                                       gigabytes(weight_bytes(serve_case(narrow, layout))),
                                       gigabytes(weight_bytes(c))));
    break;
  }
  for (int nodes = request.machines.nodes + 1; nodes <= 64; ++nodes) {
    Request wider = request;
    wider.machines.nodes = nodes;
    wider.tensor = wider.pipeline = wider.replicas = 0;
    if (!would_fit(wider, k)) continue;
    plan.changes.push_back(fmt::format("--on {}x{}: {} nodes hold it", nodes, request.machines.hardware, nodes));
    break;
  }
}

void warn(Plan& plan, const Request& request, const Scored& best, const Constants& k) {
  const Machines& machines = request.machines;
  if (machines.exchange == Exchange::kTcp && machines.nodes > 1) {
    Request forced = request;
    forced.tensor = machines.gpus();
    forced.pipeline = forced.replicas = 1;
    if (divides_heads(request.model, forced.tensor)) {
      const Scored tensor = score(forced, possible_layouts(forced).front(), k);
      plan.warnings.push_back(fmt::format(
          "Tensor parallelism over {} is a mistake: {} all-reduces take {} of each {} step, and reading a prompt of "
          "{:.0f} "
          "tokens takes {} instead of {}.",
          to_string(BitsPerSecond{machines.link * 8}), 2 * request.model.layers, milliseconds(tensor.step.exchange),
          milliseconds(tensor.step.total()), request.prompt, milliseconds(tensor.prompt), milliseconds(best.prompt)));
    }
  }
  const int gpus = machines.gpus();
  if (machines.nodes > 1 && !divides_heads(request.model, gpus) && best.planned.layout.tensor < gpus) {
    plan.warnings.push_back(fmt::format(
        "{} ranks do not divide the {} heads of {}: beyond TP {} more nodes help by pipeline (memory, and several "
        "requests at once), and not the speed of one request.",
        gpus, request.model.heads, request.model.name, best.planned.layout.tensor));
  }
  if (request.context > static_cast<double>(request.model.context) && request.model.context > 0) {
    plan.warnings.push_back(
        fmt::format("{} was trained for {} tokens of context.", request.model.name, request.model.context));
  }
}

}  // namespace

ServeCase serve_case(const Request& request, const Layout& layout) {
  ServeCase c;
  c.model = request.model;
  c.format = request.format;
  c.file_bytes = request.file_bytes;
  c.engine = request.engine;
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

Plan plan_serve(const Request& request, const Constants& k) {
  refuse_tensor(request);
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
  Plan plan;
  plan.fits = !fitting.empty();
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
