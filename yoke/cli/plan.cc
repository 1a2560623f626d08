// yoke plan: does it fit, cabled how, split how, how fast, and how sure. Parse, call, print; the planning is in
// yoke/plan.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/plan_request.h"
#include "yoke/plan/money.h"
#include "yoke/plan/plan_text.h"
#include "yoke/plan/request_json.h"
#include "yoke/plan/words.h"

namespace yoke::cli {
namespace {

int show_scale(Session& session, const plan::Request& request, int nodes) {
  if (request.goal == plan::Goal::kDraw) {
    throw Error(ErrorCode::kUsage, "--scale plans serving and training", "--on 4xspark shows drawing on four");
  }
  const std::vector<plan::ScalePoint> points = plan::scale_plan(request, nodes, plan::shipped_constants());
  if (!session.json) {
    session.print(plan::scale_text(points, request));
    return kExitOk;
  }
  Document list = Document::list();
  for (const plan::ScalePoint& point : points) {
    list.items.push_back(Document::map({{"nodes", Document::number(std::int64_t{point.nodes})},
                                        {"tokens_per_second", Document::number(point.rate)},
                                        {"efficiency", Document::number(point.efficiency)},
                                        {"layout", Document::string(point.layout)}}));
  }
  session.print_json(Document::map({{"schema", Document::number(std::int64_t{1})}, {"scale", std::move(list)}}));
  return kExitOk;
}

// The request that a plan's JSON carries, or one itself.
plan::Request replayed(const std::string& file) {
  const Document document = parse_json(read_file(file), file);
  const Document* const request = document.find("request");
  return from_json<plan::Request>(request != nullptr ? *request : document);
}

plan::Prices prices_of(const PriceArguments& given) {
  return {.kwh = given.kwh.value_or(0),
          .hardware = given.hardware.value_or(0),
          .years = given.years.value_or(0),
          .cloud_hour = given.cloud_hour.value_or(0),
          .busy = given.busy.value_or(1),
          .currency = given.currency};
}

int run_plan(Session& session, const PlanArguments& arguments) {
  if (!arguments.model && !arguments.replay && !arguments.shape.any()) {
    throw Error(ErrorCode::kUsage, "'yoke plan' needs a model",
                "such as: yoke plan llama-3.1-405b --format int4 --on 2xspark; 'yoke plan models' lists names");
  }
  const plan::Request request = arguments.replay ? replayed(*arguments.replay) : request_of(session, arguments);
  if (arguments.scale) return show_scale(session, request, positive_or(arguments.scale, "--scale", 1));
  plan::Plan made = plan::make_plan(request, plan::shipped_constants());
  plan::add_money(made, request, prices_of(arguments.prices));
  if (arguments.svg) write_file_atomically(*arguments.svg, plan::draw_svg(made.cabling, request.machines));
  if (session.json) {
    Document document = plan::to_json(made);
    document.add("request", plan::to_json(request));
    session.print_json(document);
  } else {
    session.print(plan::plan_text(made, request));
    if (arguments.svg) session.print(fmt::format("\nThe cabling is drawn in {}.\n", *arguments.svg));
  }
  return made.fits ? kExitOk : kExitFindings;
}

template <class Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [name, value] : enum_names(Enum{})) names.emplace_back(name);
  return names;
}

void declare_serving(OptionTable& table, PlanArguments& chosen) {
  table.value("--context", "N", "tokens of one sequence (default 4096; 128k works)", chosen.context);
  table.value("--requests", "N", "requests at once (default 1)", chosen.requests);
  table.value("--prompt", "N", "tokens of a prompt (default 1024)", chosen.prompt);
  table.value("--output", "N", "tokens of an answer (default 256)", chosen.output);
  table.choice("--cache", "TYPE", "of keys and values: bf16, fp8 or f32 (default: the engine's own)",
               {"bf16", "fp8", "f32"}, chosen.cache);
  table.value("--draft", "N", "speculative decoding: tokens drafted in each step", chosen.draft);
  table.value("--acceptance", "P", "chance that a drafted token is right (default 0.5)", chosen.acceptance);
}

void declare_machines(OptionTable& table, PlanArguments& chosen) {
  table.value("--on", "MACHINES", "2xspark, a cluster file, probe's JSON, a capture, or here", chosen.on);
  table.value("--nodes", "N", "the first N nodes of the cluster file (all)", chosen.nodes);
  table.value("--calibration", "FILE", "of 'yoke bench calibrate', or none (what is kept for these machines)",
              chosen.calibration);
  table.value("--link-rate", "RATE", "of one node into the fabric, such as 1Gb/s", chosen.link_rate);
  table.choice("--topology", "SHAPE", "direct, ring, mesh (four nodes, each pair with a link of half a port) or switch",
               names_of<spec::Topology>(), chosen.topology);
  table.choice("--exchange", "HOW", "between Sparks: nccl (default) or one-shot RDMA", {"nccl", "one-shot"},
               chosen.exchange);
  table.value("--oversubscription", "X", "of the fabric between leaf switches (default 1)", chosen.oversubscription);
  table.value("--tp", "N", "tensor parallelism, instead of searching", chosen.tensor);
  table.value("--pp", "N", "pipeline stages, instead of searching", chosen.pipeline);
  table.value("--dp", "N", "replicas, instead of searching", chosen.replicas);
}

void declare_training(OptionTable& table, PlanArguments& chosen) {
  table.value("--sequence", "N", "training: tokens of a sequence (default 4096)", chosen.sequence);
  table.value("--batch", "N", "training: sequences of a step (default: enough to fill the pipeline)", chosen.batch);
  table.value("--tokens", "N", "training: how many in all, such as 1T", chosen.tokens);
  table.flag("--embeddings", "also how many texts as long as --prompt become vectors each second", chosen.embeddings);
  table.flag("--lora", "training: adapters beside frozen weights", chosen.lora);
  table.value("--size", "WxH", "drawing: pixels (default 1024x1024)", chosen.size);
  table.value("--steps", "N", "drawing: steps (default: the model's usual)", chosen.steps);
}

void declare_money(OptionTable& table, PriceArguments& prices) {
  constexpr double kMin = 0.0001, kMax = 1e12;
  table.value("--price-kwh", "PRICE", "of electricity: costs per million tokens, image or run are added", prices.kwh,
              {.min = kMin, .max = 1000});
  table.value("--hardware-price", "PRICE", "of all machines together, with --years", prices.hardware,
              {.min = kMin, .max = kMax});
  table.value("--years", "N", "over which the hardware is written off", prices.years, {.min = 0.1, .max = 30});
  table.value("--cloud-price", "PRICE", "of an hour of all machines together, instead", prices.cloud_hour,
              {.min = kMin, .max = kMax});
  table.value("--busy", "SHARE", "of all hours in which the machines work (default 1)", prices.busy,
              {.min = 0.001, .max = 1});
  table.value("--currency", "WORD", "of the prices, as it is to be printed", prices.currency);
}

Action prepare_plan(OptionTable& table) {
  auto chosen = std::make_shared<PlanArguments>();
  table.positional("MODEL", "a catalogue name, a folder, a config.json, or a size such as 70B", chosen->model,
                   Presence::kOptional);
  declare_machines(table, *chosen);
  table.choice("--goal", "GOAL", "serve, draw or train (default: what the model does)", names_of<plan::Goal>(),
               chosen->goal);
  table.value("--format", "FORMAT", "of the weights: bf16, fp8, nvfp4, mxfp4, int4, q4_k_m, …", chosen->format);
  table.choice("--engine", "ENGINE", "vllm (default), sglang, trtllm, llama.cpp or yoke", names_of<plan::Engine>(),
               chosen->engine);
  declare_serving(table, *chosen);
  declare_training(table, *chosen);
  declare_shape(table, chosen->shape);
  declare_money(table, chosen->prices);
  table.value("--scale", "N", "tokens/s on 1, 2, 4, … N nodes, as a table and a plot", chosen->scale);
  table.value("--svg", "FILE", "draw the cabling", chosen->svg);
  table.value("--replay", "FILE", "plan again what a plan's JSON asked for", chosen->replay);
  return [chosen](Session& session) { return run_plan(session, *chosen); };
}

}  // namespace

CommandRow plan_command() {
  return {
      .name = "plan",
      .summary = "does a model fit, cabled how, split how, how fast, and how sure",
      .description =
          "Says before anything is bought or downloaded whether a model fits the machines, how to cable them, how "
          "to split the model, and how fast it will be: each number with an interval that holds four of five "
          "measurements, and where it comes from. Serving, drawing and training.\n\n"
          "Nothing is measured and nothing is contacted: the figures come from formulas (docs/planning.md) and "
          "published measurements, or from what 'yoke bench calibrate' measured on these machines. "
          "'yoke plan validate' shows how far off they are.\n\n"
          "Exit status: 0 it fits, 1 it does not.",
      .examples = {{"yoke plan llama-3.1-405b --format int4 --on 2xspark", "a model that one unit does not hold"},
                   {"yoke plan gpt-oss-120b --on 2xspark --requests 8", "eight requests at once"},
                   {"yoke plan flux.1-dev --on 2xspark", "seconds per image on one and two"},
                   {"yoke plan llama-2-7b --goal train --on xe9780 --tokens 1T", "how long, how much energy"},
                   {"yoke plan gpt-oss-120b --on spark --cloud-price 1.50", "what a million tokens cost"},
                   {"yoke plan models/nano --on here", "a folder, on this machine"}},
      .prepare = prepare_plan,
      .subcommands = {plan_explain_command(), plan_hardware_command(), plan_models_command(), plan_validate_command()}};
}

}  // namespace yoke::cli
