#include "yoke/cli/plan_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/plan/words.h"
#include "yoke/spec/mesh.h"

namespace yoke::cli {

namespace {

double count_or(const std::string& text, std::string_view option, double otherwise) {
  return text.empty() ? otherwise : plan::parse_count(text, option);
}

void set_goal(const PlanArguments& arguments, const predict::PlannedModel& model, plan::Request& request) {
  request.goal = model.image ? plan::Goal::kDraw : plan::Goal::kServe;
  if (!arguments.goal.empty()) request.goal = from_json<plan::Goal>(Document::string(arguments.goal));
  if (request.goal == plan::Goal::kDraw && !model.image) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' does not draw", arguments.model.value_or("a model by options")),
                "flux.1-dev, flux.1-schnell, sdxl and z-image-turbo do; or a FLUX.1 folder");
  }
  if (request.goal != plan::Goal::kDraw && !model.language) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' draws: it cannot be planned to {}", *arguments.model, arguments.goal), "--goal draw");
  }
}

void set_format(const PlanArguments& arguments, const predict::PlannedModel& model, plan::Request& request) {
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
  request.machines = predict::read_machines(
      {.on = arguments.on,
       .cluster = arguments.on || !find_cluster_file(session) ? std::nullopt : read_session_cluster(session),
       .nodes = arguments.nodes,
       .calibration = arguments.calibration});
  if (arguments.link_rate) {
    const auto rate = parse_bits_per_second(*arguments.link_rate);
    if (!rate || rate->value <= 0) {
      throw Error(ErrorCode::kUsage, fmt::format("--link-rate cannot be '{}'", printable(*arguments.link_rate, 40)),
                  "such as 1Gb/s, 100Gb/s or 800Gb/s");
    }
    plan::set_link_rate(request.machines, *rate);
  }
  if (!arguments.topology.empty()) {
    request.machines.topology = from_json<spec::Topology>(Document::string(arguments.topology));
  }
  const bool can_be_mesh =
      request.machines.kind == plan::HardwareClass::kGb10 && request.machines.nodes == spec::kMeshNodes;
  if (arguments.topology == "mesh" && !can_be_mesh) {
    throw Error(ErrorCode::kUsage, "--topology mesh is of four Sparks", "such as --on 4xspark --topology mesh");
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

predict::PlannedModel model_asked(const PlanArguments& arguments) {
  std::optional<predict::PlannedModel> named;
  if (arguments.model) named = predict::read_planned_model(*arguments.model);
  return arguments.shape.any() || !named ? shaped_model(arguments.shape, named) : *named;
}

// An option of another goal would be ignored: that is never what was meant.
void refuse_stray(const PlanArguments& a, plan::Goal goal) {
  struct Stray {
    std::string_view option;
    bool is_given;
    plan::Goal goal;
    std::string_view what;
  };
  const std::array strays = {Stray{"--size", !a.size.empty(), plan::Goal::kDraw, "drawing"},
                             Stray{"--steps", a.steps.has_value(), plan::Goal::kDraw, "drawing"},
                             Stray{"--tokens", !a.tokens.empty(), plan::Goal::kTrain, "training"},
                             Stray{"--batch", !a.batch.empty(), plan::Goal::kTrain, "training"},
                             Stray{"--sequence", !a.sequence.empty(), plan::Goal::kTrain, "training"},
                             Stray{"--lora", a.lora, plan::Goal::kTrain, "training"},
                             Stray{"--embeddings", a.embeddings, plan::Goal::kServe, "serving"},
                             Stray{"--requests", !a.requests.empty(), plan::Goal::kServe, "serving"},
                             Stray{"--draft", a.draft.has_value(), plan::Goal::kServe, "serving"}};
  for (const Stray& stray : strays) {
    if (!stray.is_given || stray.goal == goal) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{} is for {}", stray.option, stray.what),
                stray.goal == plan::Goal::kTrain   ? "--goal train plans training"
                : stray.goal == plan::Goal::kServe ? "--goal serve plans serving"
                                                   : "flux.1-dev and other image models draw");
  }
  if (a.acceptance && !a.draft) {
    throw Error(ErrorCode::kUsage, "--acceptance needs --draft", "such as --draft 3 --acceptance 0.6");
  }
}

}  // namespace

int positive_or(const std::optional<int>& value, std::string_view option, int otherwise) {
  if (!value) return otherwise;
  if (*value < 1 || *value > 65536) {
    throw Error(ErrorCode::kUsage, fmt::format("{} cannot be {}", option, *value), "a number from 1 to 65536");
  }
  return *value;
}

plan::Request request_of(const Session& session, const PlanArguments& arguments) {
  const predict::PlannedModel model = model_asked(arguments);
  plan::Request request;
  set_goal(arguments, model, request);
  refuse_stray(arguments, request.goal);
  if (model.language) request.model = *model.language;
  request.image = model.image;
  request.file_bytes = model.file_bytes;
  set_format(arguments, model, request);
  set_machines(session, arguments, request);
  if (!arguments.engine.empty()) request.engine = from_json<plan::Engine>(Document::string(arguments.engine));
  if (request.machines.kind == plan::HardwareClass::kCpu && arguments.engine.empty())
    request.engine = plan::Engine::kYoke;
  if (request.model.context > 0)
    request.context = std::min(request.context, static_cast<double>(request.model.context));
  request.context = count_or(arguments.context, "--context", request.context);
  if (request.engine == plan::Engine::kYoke && request.goal == plan::Goal::kServe) {
    request.context_may_shrink = arguments.context.empty();
    // The files say what each rank would hold in their own format only.
    if (model.file_bytes > 0 && request.file_bytes > 0)
      request.rank_weights = predict::read_rank_weights(*arguments.model);
  }
  request.concurrency = count_or(arguments.requests, "--requests", 1);
  request.embeddings = arguments.embeddings;
  request.prompt = std::min(count_or(arguments.prompt, "--prompt", request.prompt), request.context);
  request.generated = count_or(arguments.output, "--output", request.generated);
  // Every engine keeps keys and values in bf16 unless told otherwise; yoke's in f32 with --exact.
  request.cache_bytes = arguments.cache == "fp8" ? 1 : arguments.cache == "f32" ? 4 : 2;
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

namespace {

constexpr std::int64_t kVocabularyUsual = 128'256;  // Llama 3's

struct ShapeOption {
  std::string_view name;
  std::optional<int> ShapeArguments::*given;
  std::int64_t spec::ModelFacts::*value;
};
constexpr std::array kShapeOptions = {
    ShapeOption{"--layers", &ShapeArguments::layers, &spec::ModelFacts::layers},
    ShapeOption{"--width", &ShapeArguments::width, &spec::ModelFacts::width},
    ShapeOption{"--heads", &ShapeArguments::heads, &spec::ModelFacts::heads},
    ShapeOption{"--kv-heads", &ShapeArguments::kv_heads, &spec::ModelFacts::kv_heads},
    ShapeOption{"--head-width", &ShapeArguments::head_width, &spec::ModelFacts::head_width},
    ShapeOption{"--mlp-width", &ShapeArguments::mlp_width, &spec::ModelFacts::mlp_width},
    ShapeOption{"--vocabulary", &ShapeArguments::vocabulary, &spec::ModelFacts::vocabulary},
    ShapeOption{"--experts", &ShapeArguments::experts, &spec::ModelFacts::experts},
    ShapeOption{"--experts-used", &ShapeArguments::experts_used, &spec::ModelFacts::experts_used},
    ShapeOption{"--expert-width", &ShapeArguments::expert_width, &spec::ModelFacts::expert_width}};

void guess(spec::ModelFacts& model, std::int64_t spec::ModelFacts::*value, std::int64_t guessed,
           std::string_view option) {
  if (model.*value > 0) return;
  model.*value = guessed;
  model.guesses.push_back(fmt::format("{} was not given: {} assumed", option, guessed));
}

void fill_gaps(spec::ModelFacts& model) {
  if (model.layers < 1 || model.width < 1 || model.heads < 1) {
    throw Error(ErrorCode::kUsage, "a model by options needs --layers, --width and --heads",
                "such as --layers 80 --width 8192 --heads 64 --kv-heads 8 --mlp-width 28672");
  }
  guess(model, &spec::ModelFacts::kv_heads, model.heads, "--kv-heads");
  guess(model, &spec::ModelFacts::head_width, std::max<std::int64_t>(model.width / model.heads, 1), "--head-width");
  if (model.experts == 0) guess(model, &spec::ModelFacts::mlp_width, 7 * model.width / 2, "--mlp-width");
  guess(model, &spec::ModelFacts::vocabulary, kVocabularyUsual, "--vocabulary");
  if (model.experts == 0) return;
  guess(model, &spec::ModelFacts::experts_used, std::min<std::int64_t>(model.experts, 8), "--experts-used");
  guess(model, &spec::ModelFacts::expert_width, model.width, "--expert-width");
}

}  // namespace

bool ShapeArguments::any() const {
  return std::any_of(kShapeOptions.begin(), kShapeOptions.end(),
                     [&](const ShapeOption& option) { return (this->*option.given).has_value(); });
}

void declare_shape(OptionTable& table, ShapeArguments& a) {
  table.value("--layers", "N", "the model's shape instead of a name, or what differs from it: layers", a.layers);
  table.value("--width", "N", "of the model (hidden_size)", a.width);
  table.value("--heads", "N", "of attention", a.heads);
  table.value("--kv-heads", "N", "of keys and values (as many as heads)", a.kv_heads);
  table.value("--head-width", "N", "of one head (width / heads)", a.head_width);
  table.value("--mlp-width", "N", "of a dense layer (intermediate_size)", a.mlp_width);
  table.value("--vocabulary", "N", "tokens", a.vocabulary);
  table.value("--experts", "N", "of each layer of a mixture", a.experts);
  table.value("--experts-used", "N", "of them by one token", a.experts_used);
  table.value("--expert-width", "N", "of one expert (moe_intermediate_size)", a.expert_width);
}

predict::PlannedModel shaped_model(const ShapeArguments& arguments, const std::optional<predict::PlannedModel>& named) {
  if (named && !named->language) {
    throw Error(ErrorCode::kUsage, "options such as --layers shape language models, and this one draws",
                "leave them out");
  }
  predict::PlannedModel model =
      named.value_or(predict::PlannedModel{.language = spec::ModelFacts{.name = "by options"}});
  spec::ModelFacts& facts = *model.language;
  for (const ShapeOption& option : kShapeOptions) {
    const std::optional<int>& given = arguments.*option.given;
    if (!given) continue;
    if (*given < 1) {
      throw Error(ErrorCode::kUsage, fmt::format("{} cannot be {}", option.name, *given), "a number above zero");
    }
    facts.*option.value = *given;
  }
  fill_gaps(facts);
  if (named) {
    facts.name += ", changed";
    facts.total_given = facts.active_given = 0;
    facts.full_layers = std::min(facts.full_layers, facts.layers);
    facts.dense_layers = std::min(facts.dense_layers, facts.layers);
    model.file_bytes = 0;
  }
  if (!spec::is_plausible(facts)) {
    throw Error(ErrorCode::kUsage, "such a model cannot be: its sizes do not go together or are out of range",
                "heads are a multiple of --kv-heads, experts used at most --experts, sizes at most 16 million");
  }
  return model;
}

}  // namespace yoke::cli
