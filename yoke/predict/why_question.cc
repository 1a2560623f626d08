#include "yoke/predict/why_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/predict/plan_input.h"

namespace yoke::predict {
namespace {

constexpr double kMinSpread = 1.6;    // of a calibrated plan's terms: a single term is less certain than their sum
constexpr double kTermsSpread = 1.5;  // beside the spread of the whole
constexpr double kSpreadUnknown = 4;

// One rank a node: the ranks of one machine are planned as one, whatever their number.
plan::Layout layout_of(const spec::StepAccount& account, const std::optional<spec::Cluster>& cluster) {
  const int ranks = cluster ? static_cast<int>(account.ranks.size()) : 1;
  const bool is_pipeline = ranks > 1 && account.decode.waiting.empty();
  return is_pipeline ? plan::Layout{.pipeline = ranks} : plan::Layout{.tensor = ranks};
}

double spread_of(const plan::Request& request) {
  const auto made = try_to([&] { return plan::make_plan(request, plan::shipped_constants()); });
  if (!made) return kSpreadUnknown;
  for (const plan::Estimate& estimate : made->estimates) {
    if (estimate.name.starts_with("decode, one") && estimate.low > 0) {
      return std::max(kMinSpread, kTermsSpread * estimate.value / estimate.low);
    }
  }
  return kSpreadUnknown;
}

why::PlannedRun planned_terms(const RunAsked& asked, const spec::StepAccount& account) {
  const plan::Request request = planned_request(asked);
  plan::Constants constants = plan::shipped_constants();
  if (request.machines.measured) plan::set_measured(constants, *request.machines.measured);
  const plan::Layout layout = layout_of(account, asked.cluster);
  const plan::ServeCase c = plan::serve_case(request, layout);
  const plan::StepTime step = plan::decode_step(c, constants);
  why::PlannedRun planned{.decode = {.weights = step.weights + step.arithmetic,
                                     .cache = step.cache,
                                     .fixed = step.fixed,
                                     .exchange = step.exchange},
                          .spread = spread_of(request),
                          .is_calibrated = request.machines.measured.has_value(),
                          .read_rate = request.machines.gpu.bandwidth};
  const spec::StepSums& prefill = account.ranks.front().prefill;
  if (prefill.tokens <= 0 || request.prompt <= 0) return planned;
  // Without the exchange, which follows from the sizes that were really exchanged.
  plan::ServeCase alone = c;
  alone.layout = {};
  alone.machines.nodes = 1;
  planned.prefill_computing =
      plan::prefill_seconds(alone, request.prompt, 0, constants) / request.prompt / std::max(1, layout.tensor);
  if (prefill.exchanges > 0 && layout.tensor > 1) {
    const plan::Group group = plan::group_of(request.machines, layout.tensor);
    planned.prefill_exchange =
        prefill.exchanges / prefill.steps *
        plan::all_reduce_seconds(request.machines, group, prefill.exchange_bytes / prefill.exchanges, constants);
  }
  return planned;
}

plan::Engine planned_engine_of(const std::string& kind) {
  if (kind == "yoke") return plan::Engine::kYoke;
  if (kind == "sglang") return plan::Engine::kSglang;
  return kind == "llama-server" ? plan::Engine::kLlamaCpp : plan::Engine::kVllm;
}

}  // namespace

why::RailsExpected rails_expected(const std::optional<spec::Cluster>& cluster) {
  why::RailsExpected expected;
  if (!cluster || cluster->nodes.size() < 2) return expected;
  std::size_t rails = cluster->nodes.front().rails.size();
  for (const spec::ClusterNode& node : cluster->nodes) rails = std::min(rails, node.rails.size());
  if (rails == 0 && cluster->fabric) rails = cluster->fabric->subnets.size();
  for (std::size_t i = 0; i < rails; ++i) expected.rails.emplace_back(1, static_cast<char>('A' + i));
  if (!cluster->fabric) return expected;
  expected.mtu = cluster->fabric->mtu;
  if (cluster->fabric->rail_rate) expected.rate = cluster->fabric->rail_rate->value;
  return expected;
}

why::RunQuestion why_question(const std::string& options, const RunAsked& asked, const spec::StepAccount& account) {
  why::RunQuestion question{.subject = {}, .account = account};
  question.rails = rails_expected(asked.cluster);
  // On a lab's head node the cluster file is one that only this program knows.
  question.options = asked.cluster && asked.cluster->lab ? " --lab " + *asked.cluster->lab : options;
  if (account.ranks.empty()) return question;
  // A plan that cannot be made costs nothing but its column.
  if (const auto planned = try_to([&] { return planned_terms(asked, account); })) question.planned = *planned;
  return question;
}

void keep_question(bench::RunRecord& record, const why::RunQuestion& question) {
  Document settings = parse_json(record.settings, "settings");
  settings.add(bench::kAccountKey, why::to_json(question));
  record.settings = print_json(settings, JsonLayout::kOneLine);
}

why::PlannedEngine plan_engine(const EnginePlanAsked& asked, const why::WatchedEngine& engine) {
  const PlannedModel model = read_planned_model(asked.model.empty() ? engine.model : asked.model);
  if (!model.language) throw Error(ErrorCode::kUnsupported, "not a language model");
  plan::Request request;
  request.model = *model.language;
  const plan::WeightFormat* const format = asked.format.empty() ? model.format : plan::find_format(asked.format);
  request.format = format != nullptr ? *format : *plan::find_format("bf16");
  request.file_bytes = model.file_bytes;
  // Without a cluster it is this machine that is watched.
  request.machines = read_machines(
      {.on = asked.cluster ? std::nullopt : std::optional<std::string>("here"), .cluster = asked.cluster});
  request.engine = planned_engine_of(engine.kind);
  request.concurrency = std::max(1.0, engine.running.value_or(1));
  const plan::Plan made = plan::make_plan(request, plan::shipped_constants());
  if (!made.fits || made.layouts.empty()) throw Error(ErrorCode::kUnsupported, "the plan says it does not fit");
  why::PlannedEngine planned;
  for (const plan::TimeShare& share : made.step) {
    if (share.part == "weights" || share.part == "arithmetic") planned.step.weights += share.seconds;
    if (share.part == "cache") planned.step.cache = share.seconds;
    if (share.part == "launches") planned.step.fixed = share.seconds;
    if (share.part == "exchange") planned.step.exchange = share.seconds;
    if (share.part == "other prompts") planned.prompts = share.seconds;
  }
  for (const plan::Estimate& estimate : made.estimates) {
    if (estimate.name.starts_with("decode")) {  // that of several requests comes last
      planned.rate = estimate.value;
      planned.low = estimate.low;
      planned.high = estimate.high;
    }
    if (estimate.name == "prefill") planned.prefill_rate = estimate.value;
  }
  return planned;
}

}  // namespace yoke::predict
