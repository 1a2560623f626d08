#include "yoke/predict/predicted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/file_tree.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/bench/calibration_files.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/node_access.h"
#include "yoke/lab/plain.h"
#include "yoke/lab/state.h"
#include "yoke/plan/plan_text.h"
#include "yoke/predict/plan_input.h"

namespace yoke::predict {

namespace {

constexpr std::size_t kTokensMin = 2;  // one token has no step after it
constexpr double kMemoryEnough = 1e15;

plan::Machines machines_for(const std::optional<spec::Cluster>& cluster) {
  if (cluster && cluster->nodes.size() > 1) {
    plan::Machines machines = plan::machines_of(*cluster);
    // yoke's engine computes on processors, whatever GPUs the nodes have.
    if (machines.kind != plan::HardwareClass::kCpu) {
      plan::Machines plain = plan::machines_of(*spec::find_hardware_facts("cpu"), machines.nodes);
      plain.link = machines.link;
      machines = plain;
    }
    if (const auto measured = find_cluster_calibration(*cluster)) plan::calibrate(*measured, machines);
    return machines;
  }
  plan::Machines machines = plan::machines_of(*spec::find_hardware_facts("cpu"), 1);
  if (const auto measured = find_calibration_here()) {
    plan::calibrate(*measured, machines);
  }
  return machines;
}

PredictedRate rate_of(const plan::Plan& made, std::string_view name) {
  for (const plan::Estimate& estimate : made.estimates) {
    if (estimate.name.starts_with(name)) return {estimate.value, estimate.low, estimate.high};
  }
  return {};
}

PredictedRun predicted_run(const RunAsked& asked) {
  const plan::Request request = planned_request(asked);
  const plan::Plan made = plan::make_plan(request, plan::shipped_constants());
  return {.prefill = rate_of(made, "prefill"),
          .decode = rate_of(made, "decode, one"),
          .is_calibrated = request.machines.measured.has_value()};
}

Document rate_json(const PredictedRate& rate) {
  return Document::map({{"value", Document::number(rate.value)},
                        {"low", Document::number(rate.low)},
                        {"high", Document::number(rate.high)}});
}

std::string difference(double measured, double predicted) {
  return fmt::format("{:+.0f}%", 100 * (measured / predicted - 1));
}

}  // namespace

plan::Request planned_request(const RunAsked& asked) {
  const PlannedModel model = read_planned_model(asked.engine.model.native());
  if (!model.language) throw Error(ErrorCode::kUnsupported, "not a language model");
  plan::Request request;
  request.model = *model.language;
  request.format = model.format != nullptr ? *model.format : *plan::find_format("bf16");
  request.file_bytes = model.file_bytes;
  request.machines = machines_for(asked.cluster);
  request.machines.gpu.memory = kMemoryEnough;  // it ran: whether it fits is no question any more
  request.engine = plan::Engine::kYoke;
  request.prompt = static_cast<double>(asked.prompt_tokens);
  request.generated = static_cast<double>(asked.answer_tokens);
  request.context = request.prompt + request.generated / 2;
  request.cache_bytes = static_cast<double>(size_of(asked.engine.cache_type));
  request.rank_weights = read_rank_weights(asked.engine.model.native());  // they decide how ranks share it
  return request;
}

std::optional<PredictedRun> predict_run(const RunAsked& asked) {
  if (asked.prompt_tokens == 0 || asked.answer_tokens < kTokensMin) return std::nullopt;
  const auto predicted = try_to([&] { return predicted_run(asked); });
  return predicted ? std::optional(*predicted) : std::nullopt;
}

std::string predicted_text(const PredictedRun& predicted, double decode_measured) {
  const PredictedRate& decode = predicted.decode;
  return fmt::format("plan: {} tokens/s predicted ({} to {}), {} measured ({}){}", plan::short_number(decode.value),
                     plan::short_number(decode.low), plan::short_number(decode.high),
                     plan::short_number(decode_measured), difference(decode_measured, decode.value),
                     predicted.is_calibrated ? "" : "; not calibrated: 'yoke bench calibrate' measures this machine");
}

Document to_json(const PredictedRun& predicted) {
  return Document::map({{"prefill_tokens_per_second", rate_json(predicted.prefill)},
                        {"decode_tokens_per_second", rate_json(predicted.decode)},
                        {"calibrated", Document::boolean(predicted.is_calibrated)}});
}

std::vector<std::optional<double>> predict_all_reduce(const bench::CollectiveRun& run,
                                                      const std::optional<spec::Cluster>& cluster) {
  std::vector<std::optional<double>> times;
  const bool is_planned = cluster && cluster->nodes.size() > 1 && run.ranks.size() == cluster->nodes.size() &&
                          run.options.kind == comm::CollectiveKind::kAllReduce;
  if (!is_planned) return times;
  const auto machines = try_to([&] {
    plan::Machines found = plan::machines_of(*cluster);
    if (run.transport.starts_with("nccl")) {
      found.exchange = plan::Exchange::kNcclTests;
    } else if (found.exchange != plan::Exchange::kTcp) {
      found.exchange = plan::Exchange::kTcp;
      found.link_latency = plan::machines_of(*spec::find_hardware_facts("cpu"), 2).link_latency;
    }
    if (const auto measured = find_cluster_calibration(*cluster)) plan::calibrate(*measured, found);
    return found;
  });
  if (!machines) return times;
  const bool is_nccl = run.transport.starts_with("nccl");
  if (machines->measured && !machines->measured->all_reduce_bare.empty() &&
      (machines->measured->transport == "nccl") == is_nccl) {
    for (const bench::CollectiveRow& row : run.rows) {
      times.emplace_back(1e6 * plan::curve_seconds(machines->measured->all_reduce_bare, static_cast<double>(row.size)));
    }
    return times;
  }
  plan::Constants constants = plan::shipped_constants();
  if (machines->measured) plan::set_measured(constants, *machines->measured);
  const plan::Group group = plan::group_of(*machines, machines->gpus());
  for (const bench::CollectiveRow& row : run.rows) {
    times.emplace_back(1e6 * plan::all_reduce_seconds(*machines, group, static_cast<double>(row.size), constants));
  }
  return times;
}

std::string predicted_text(const bench::CollectiveRun& run, const std::vector<std::optional<double>>& predicted) {
  std::string text;
  const auto line = [&](std::size_t i) {
    const double measured = run.rows[i].out_of_place.stats.p50;
    if (!predicted[i] || measured <= 0) return;
    text += fmt::format("# Plan: {} in {} predicted, {} measured ({})\n", to_string(Bytes{run.rows[i].size}),
                        to_string(Seconds{*predicted[i] / 1e6}), to_string(Seconds{measured / 1e6}),
                        difference(measured, *predicted[i]));
  };
  if (predicted.empty()) return text;
  line(0);
  if (predicted.size() > 1) line(predicted.size() - 1);
  return text;
}

PredictedMachine predict_machine() {
  const spec::HardwareFacts& plain = *spec::find_hardware_facts("cpu");
  PredictedMachine machine{.bandwidth = plain.bandwidth.value / 1e9,
                           .arithmetic = plain.bf16.value / 1e9,
                           .source = "the catalogue's plain processor"};
  const auto measured = try_to([] { return find_calibration_here(); });
  if (measured && *measured && (*measured)->bandwidth > 0 && (*measured)->arithmetic > 0) {
    machine = {.bandwidth = (*measured)->bandwidth / 1e9,
               .arithmetic = (*measured)->arithmetic / 1e9,
               .source = fmt::format("calibrated on {}", (*measured)->time.substr(0, 10))};
  }
  return machine;
}

std::string add_predicted(bench::RunRecord& record, const PredictedMachine& machine) {
  bench::RecordRow* concerned = nullptr;  // the last one: all cores
  for (bench::RecordRow& row : record.rows) {
    const bool is_read = row.unit == "GB/s" && row.name.starts_with("read");
    const bool is_f32 = row.unit == "GFLOP/s" && row.name.starts_with("f32");
    if (is_read || is_f32) concerned = &row;
  }
  if (concerned == nullptr) return "";
  const double predicted = concerned->unit == "GB/s" ? machine.bandwidth : machine.arithmetic;
  concerned->predicted = predicted;
  return fmt::format("Plan: {} {} {} predicted ({}), {} measured ({}).\n", concerned->name,
                     plan::short_number(predicted), concerned->unit, machine.source,
                     plan::short_number(concerned->value), difference(concerned->value, predicted));
}

namespace {

constexpr const char* kLabCalibration = "/run/yoke-lab/calibration.json";

// A plain lab's nodes have no files of their own.
bool is_in_own_files() { return lab::in_node() && std::getenv(lab::kPlainFolderVariable) == nullptr; }

std::optional<plan::Calibration> read_from_lab(const std::string& lab) {
  const lab::LabLayout layout = lab::load_layout(lab);
  if (layout.plain) return std::nullopt;
  const auto text = lab::NodeAccess(lab, layout.nodes.front()).read(kLabCalibration);
  if (!text) return std::nullopt;
  return from_json<plan::Calibration>(parse_json(*text, kLabCalibration));
}

}  // namespace

std::filesystem::path calibration_place(const std::optional<spec::Cluster>& cluster) {
  if (!cluster) return bench::calibration_file(bench::facts_of_this_machine(DiskTree()).host);
  return cluster->lab && is_in_own_files() ? std::filesystem::path(kLabCalibration)
                                           : bench::calibration_file(cluster->name);
}

std::optional<plan::Calibration> find_cluster_calibration(const spec::Cluster& cluster) {
  if (!cluster.lab) return bench::find_calibration(cluster.name);
  if (is_in_own_files()) {
    if (!std::filesystem::exists(kLabCalibration)) return std::nullopt;
    return bench::read_calibration(kLabCalibration);
  }
  // A lab that is down, or another user's, has none for us.
  const auto found = try_to([&] { return read_from_lab(*cluster.lab); });
  return found && *found ? *found : bench::find_calibration(cluster.name);
}

std::optional<plan::Calibration> find_calibration_here() {
  return bench::find_calibration(bench::facts_of_this_machine(DiskTree()).host);
}

}  // namespace yoke::predict
