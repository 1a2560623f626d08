// yoke plan: does it fit, cabled how, split how, how fast, and how sure. Parse, call, print; the planning is in
// yoke/plan.
#include <fmt/format.h>

#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/plan_input.h"
#include "yoke/cli/plan_text.h"
#include "yoke/plan/request_json.h"
#include "yoke/plan/words.h"

namespace yoke {
namespace {

struct PlanArguments {
  std::optional<std::string> model;
  std::optional<std::string> on;
  std::string goal;
  std::string format;
  std::string engine;
  std::string context;
  std::string requests;
  std::string prompt;
  std::string output;
  std::string cache;
  std::optional<int> draft;
  std::optional<double> acceptance;
  std::optional<int> tensor;
  std::optional<int> pipeline;
  std::optional<int> replicas;
  std::optional<std::string> link_rate;
  std::string topology;
  std::string exchange;
  std::optional<double> oversubscription;
  std::string tokens;
  std::string sequence;
  std::string batch;
  bool lora = false;
  std::string size;
  std::optional<int> steps;
  std::optional<int> scale;
  std::optional<std::string> svg;
  std::optional<std::string> replay;
};

int positive_or(const std::optional<int>& value, std::string_view option, int otherwise) {
  if (!value) return otherwise;
  if (*value < 1 || *value > 65536) {
    throw Error(ErrorCode::kUsage, fmt::format("{} cannot be {}", option, *value), "a number from 1 to 65536");
  }
  return *value;
}

double count_or(const std::string& text, std::string_view option, double otherwise) {
  return text.empty() ? otherwise : plan::parse_count(text, option);
}

void set_goal(const PlanArguments& arguments, const PlannedModel& model, plan::Request& request) {
  request.goal = model.image ? plan::Goal::kDraw : plan::Goal::kServe;
  if (!arguments.goal.empty()) request.goal = from_document<plan::Goal>(Document::string(arguments.goal));
  if (request.goal == plan::Goal::kDraw && !model.image) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' does not draw", *arguments.model),
                "flux.1-dev, flux.1-schnell, sdxl and z-image-turbo do; or a FLUX.1 folder");
  }
  if (request.goal != plan::Goal::kDraw && !model.language) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' draws: it cannot be planned to {}", *arguments.model, arguments.goal), "--goal draw");
  }
}

void set_format(const PlanArguments& arguments, const PlannedModel& model, plan::Request& request) {
  const plan::WeightFormat* format = model.format ? model.format : plan::find_format("bf16");
  if (!arguments.format.empty()) {
    const plan::WeightFormat* const asked = plan::find_format(arguments.format);
    if (!asked) {
      const std::vector<std::string> names = plan::format_names();
      throw Error(ErrorCode::kUsage, fmt::format("no format is called '{}'", printable(arguments.format, 40)),
                  suggest(arguments.format, names, "formats"));
    }
    // The files' own size says nothing about another format.
    if (asked != format) request.file_bytes = 0;
    format = asked;
  }
  request.format = *format;
}

void set_machines(const Session& session, const PlanArguments& arguments, plan::Request& request) {
  request.machines = read_machines(session, arguments.on);
  if (arguments.link_rate) {
    const auto rate = parse_bits_per_second(*arguments.link_rate);
    if (!rate || rate->value <= 0) {
      throw Error(ErrorCode::kUsage, fmt::format("--link-rate cannot be '{}'", printable(*arguments.link_rate, 40)),
                  "such as 1Gb/s, 100Gb/s or 800Gb/s");
    }
    plan::set_link_rate(request.machines, *rate);
  }
  if (!arguments.topology.empty()) {
    request.machines.topology = from_document<Topology>(Document::string(arguments.topology));
  }
  if (arguments.exchange == "one-shot") request.machines.exchange = plan::Exchange::kOneShot;
  if (arguments.oversubscription) {
    if (*arguments.oversubscription < 1) {
      throw Error(ErrorCode::kUsage, "--oversubscription cannot be below 1", "2 means half of the rate between leaves");
    }
    request.machines.oversubscription = *arguments.oversubscription;
  }
}

void set_speculation(const PlanArguments& arguments, plan::Request& request) {
  if (arguments.acceptance && (*arguments.acceptance <= 0 || *arguments.acceptance >= 1)) {
    throw Error(ErrorCode::kUsage, fmt::format("--acceptance cannot be {}", *arguments.acceptance),
                "the chance that a drafted token is right: between 0 and 1, such as 0.6");
  }
  request.draft = arguments.draft ? positive_or(arguments.draft, "--draft", 0) : 0;
  request.acceptance = arguments.acceptance.value_or(0);
}

plan::Request request_of(const Session& session, const PlanArguments& arguments) {
  const PlannedModel model = read_planned_model(*arguments.model);
  plan::Request request;
  set_goal(arguments, model, request);
  if (model.language) request.model = *model.language;
  request.image = model.image;
  request.file_bytes = model.file_bytes;
  set_format(arguments, model, request);
  set_machines(session, arguments, request);
  if (!arguments.engine.empty()) request.engine = from_document<plan::Engine>(Document::string(arguments.engine));
  if (request.machines.kind == plan::HardwareClass::kCpu && arguments.engine.empty())
    request.engine = plan::Engine::kYoke;
  if (request.model.context > 0)
    request.context = std::min(request.context, static_cast<double>(request.model.context));
  request.context = count_or(arguments.context, "--context", request.context);
  request.concurrency = count_or(arguments.requests, "--requests", 1);
  request.prompt = std::min(count_or(arguments.prompt, "--prompt", request.prompt), request.context);
  request.generated = count_or(arguments.output, "--output", request.generated);
  // yoke's engine keeps keys and values in f32 unless told otherwise.
  const std::string usual = request.engine == plan::Engine::kYoke ? "f32" : "bf16";
  const std::string& cache = arguments.cache.empty() ? usual : arguments.cache;
  request.cache_bytes = cache == "fp8" ? 1 : cache == "bf16" ? 2 : 4;
  set_speculation(arguments, request);
  request.tensor = positive_or(arguments.tensor, "--tp", 0);
  request.pipeline = positive_or(arguments.pipeline, "--pp", 0);
  request.replicas = positive_or(arguments.replicas, "--dp", 0);
  request.tuning = arguments.lora ? plan::Tuning::kLora : plan::Tuning::kFull;
  request.sequence = count_or(arguments.sequence, "--sequence", request.sequence);
  request.global_batch = count_or(arguments.batch, "--batch", 0);
  request.tokens = count_or(arguments.tokens, "--tokens", 0);
  if (!arguments.size.empty()) std::tie(request.width, request.height) = plan::parse_image_size(arguments.size);
  request.steps = arguments.steps ? positive_or(arguments.steps, "--steps", 0) : 0;
  return request;
}

int show_scale(Session& session, const plan::Request& request, int nodes) {
  if (request.goal == plan::Goal::kDraw) {
    throw Error(ErrorCode::kUsage, "--scale plans serving and training", "--on 4xspark shows drawing on four");
  }
  const std::vector<plan::ScalePoint> points = plan::scale_plan(request, nodes, plan::shipped_constants());
  if (!session.json) {
    session.print(scale_text(points, request));
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
  return plan::request_from_json(request != nullptr ? *request : document);
}

int run_plan(Session& session, const PlanArguments& arguments) {
  if (!arguments.model && !arguments.replay) {
    throw Error(ErrorCode::kUsage, "'yoke plan' needs a model",
                "such as: yoke plan llama-3.1-405b --format int4 --on 2xspark; 'yoke plan models' lists names");
  }
  const plan::Request request = arguments.replay ? replayed(*arguments.replay) : request_of(session, arguments);
  if (arguments.scale) return show_scale(session, request, positive_or(arguments.scale, "--scale", 1));
  const plan::Plan made = plan::make_plan(request, plan::shipped_constants());
  if (arguments.svg) write_file_atomically(*arguments.svg, draw_svg(made.cabling, request.machines));
  if (session.json) {
    Document document = plan::to_json(made);
    document.add("request", plan::to_json(request));
    session.print_json(document);
  } else {
    session.print(plan_text(made, request));
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
  table.value("--link-rate", "RATE", "of one node into the fabric, such as 1Gb/s", chosen.link_rate);
  table.choice("--topology", "SHAPE", "direct, ring or switch", names_of<Topology>(), chosen.topology);
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
  table.flag("--lora", "training: adapters beside frozen weights", chosen.lora);
  table.value("--size", "WxH", "drawing: pixels (default 1024x1024)", chosen.size);
  table.value("--steps", "N", "drawing: steps (default: the model's usual)", chosen.steps);
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
          "published measurements. 'yoke plan validate' shows how far off they are.\n\n"
          "Exit status: 0 it fits, 1 it does not.",
      .examples = {{"yoke plan llama-3.1-405b --format int4 --on 2xspark", "a model that one unit does not hold"},
                   {"yoke plan gpt-oss-120b --on 2xspark --requests 8", "eight requests at once"},
                   {"yoke plan flux.1-dev --on 2xspark", "seconds per image on one and two"},
                   {"yoke plan llama-2-7b --goal train --on xe9780 --tokens 1T", "how long, how much energy"},
                   {"yoke plan models/nano --on here", "a folder, on this machine"}},
      .prepare = prepare_plan,
      .subcommands = {plan_explain_command(), plan_hardware_command(), plan_models_command(), plan_validate_command()}};
}

}  // namespace yoke
