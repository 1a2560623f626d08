// A row of published measurements as a question to the planner. Rows are written by people: what they leave out is
// assumed by the rules of docs/planning.md, the same for every row.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "yoke/base/text.h"
#include "yoke/plan/draw.h"
#include "yoke/plan/measured.h"
#include "yoke/plan/scales.h"
#include "yoke/plan/train.h"

namespace yoke::plan {
namespace {

constexpr double kContextUsual = 512;
constexpr double kQueueUsual = 32;  // sequences that vLLM ran at once in the published sweeps

Question declined(std::string why) { return {.answer = {}, .why = std::move(why)}; }

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// The first number of a text, or what to assume.
double number_in(std::string_view text, double otherwise) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    return failure == std::errc{} && end != text.data() + i ? value : otherwise;
  }
  return otherwise;
}

// "TP4 PP8 VP5": the number after a word, 1 where it is not there.
int degree(const std::string& text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return 1;
  int value = 1;
  const char* const start = text.data() + at + word.size();
  std::from_chars(start, text.data() + text.size(), value);
  return std::clamp(value, 1, 65536);
}

// "7.54GiB", "199 GB", "40.61 GB/token" in bytes; 0 where there is none.
double bytes_in(const std::string& text, std::string_view unit, double scale) {
  const std::size_t at = text.find(unit);
  if (at == std::string::npos || at == 0) return 0;
  std::size_t start = at;
  while (start > 0 &&
         (text[start - 1] == ' ' || text[start - 1] == '.' || (text[start - 1] >= '0' && text[start - 1] <= '9'))) {
    --start;
  }
  return number_in(std::string_view(text).substr(start, at - start), 0) * scale;
}

std::optional<Machines> machines_of_row(const MeasuredRow& row) {
  // "GB300" is looked for before "B300", which it contains.
  for (const auto& [part, name] :
       {std::pair{"GB10", "spark"}, std::pair{"GB300", "gb300"}, std::pair{"B300", "b300"}, std::pair{"B200", "b200"},
        std::pair{"H200", "h200"}, std::pair{"H100", "h100"}, std::pair{"H800", "h800"}, std::pair{"A100", "a100"},
        std::pair{"H20", "h20"}, std::pair{"L40S", "l40s"}, std::pair{"L20", "l20"}, std::pair{"4090", "rtx-4090"},
        std::pair{"RTX PRO 6000", "rtx-pro-6000"}, std::pair{"RTX 6000 Pro", "rtx-pro-6000"}}) {
    if (!has(row.hardware, part)) continue;
    const spec::HardwareFacts& facts = *spec::find_hardware_facts(name);
    const int per_node = std::max(facts.hardware->gpus, 1);
    Machines machines = machines_of(facts, std::clamp((row.gpus + per_node - 1) / per_node, 1, kNodesMax));
    if (has(row.hardware, "switch")) machines.topology = spec::Topology::kSwitch;
    if (has(row.parallelism, "bond")) machines.exchange = Exchange::kBonded;
    return machines;
  }
  return std::nullopt;
}

std::optional<spec::ModelFacts> model_of_row(const MeasuredRow& row) {
  std::string name = row.model;
  if (const std::size_t open = name.find(" ("); open != std::string::npos && open > 0) name.resize(open);
  if (const spec::ModelFacts* found = spec::find_model_facts(name)) return *found;
  // "glm-5.2 504B NVFP4": a pruned variant keeps the shape and the active size.
  const std::size_t space = name.find(' ');
  if (space != std::string::npos && space > 0) {
    if (const spec::ModelFacts* found = spec::find_model_facts(name.substr(0, space))) {
      spec::ModelFacts variant = *found;
      if (const auto sized = spec::facts_from_size(name.substr(space + 1)))
        variant.total_given = spec::count_model(*sized).total;
      if (variant.total_given > 0 && variant.active_given == 0) variant.active_given = variant.total_given;
      return variant;
    }
  }
  if (const double bytes = bytes_in(name, " GB weights", 1e9); bytes > 0) {
    auto sized = spec::facts_from_size(fmt::format("{:.0f}B", bytes / 1e9));
    if (sized) sized->total_given = sized->active_given = static_cast<std::int64_t>(bytes);
    return sized;
  }
  if (auto sized = spec::facts_from_size(name)) return sized;
  // An unnamed model, but one that is said to be dense or to fill a node: the size that people share out, 70B.
  if (has(name, "dense") || has(name, "fits one node")) return *spec::find_model_facts("llama-3.3-70b");
  return std::nullopt;
}

WeightFormat format_of_row(const MeasuredRow& row, const spec::ModelFacts& model) {
  const std::string quant = lower(row.quant);
  const auto named = [](std::string_view name) { return *find_format(name); };
  if (has(quant, "fp8/fp4") || has(quant, "native")) return named("fp8-fp4");
  if (has(quant, "int4/int8")) return named("int4-int8");
  const bool is_gpt_oss = model.gpt_oss;
  if (has(quant, "mxfp4") || (is_gpt_oss && (has(quant, "fp4") || has(quant, "fp8")))) {
    if (has(quant, "gguf") || has(lower(row.engine), "llama.cpp") || has(lower(row.engine), "ollama")) {
      return named("mxfp4-gguf");
    }
    // Tuned images quantize attention and head too; the engine's text or an FP8 cache is the only hint.
    const bool is_tuned = has(row.engine, "CUTLASS") || has(quant, "kv fp8");
    return named(is_tuned ? "mxfp4-all" : "mxfp4");
  }
  for (const std::string_view name : {"nvfp4", "q8_0", "q4_k_m", "q4_0", "q6_k", "int4", "awq", "gptq", "fp4"}) {
    if (has(quant, name)) return named(name);
  }
  if (has(quant, "fp8") || has(quant, "float8")) return named("fp8");
  if (quant.empty() && has(lower(row.metric), "speedup")) return named("fp8");
  return named("bf16");
}

Engine engine_of_row(const MeasuredRow& row) {
  const std::string engine = lower(row.engine);
  if (has(engine, "llama.cpp") || has(engine, "ollama")) return Engine::kLlamaCpp;
  if (has(engine, "trt") || has(engine, "tensorrt")) return Engine::kTensorRt;
  return has(engine, "sglang") ? Engine::kSglang : Engine::kVllm;
}

Question ask_serve(const MeasuredRow& row, Machines machines) {
  const auto model = model_of_row(row);
  if (!model) return declined("neither the model nor its size is known");
  ServeCase c;
  c.model = *model;
  c.format = format_of_row(row, *model);
  c.engine = engine_of_row(row);
  c.graphs = !has(row.engine, "graphs off");
  c.machines = std::move(machines);
  c.layout = {.tensor = std::max(degree(row.parallelism, "TP"), degree(row.parallelism, "DEP")),
              .pipeline = degree(row.parallelism, "PP"),
              .replicas = degree(row.parallelism, "DP")};
  const std::string quant = row.quant;
  c.file_bytes = bytes_in(quant, "GiB", kGiB);
  if (has(quant, "GB/token")) {
    c.read_bytes_given = bytes_in(quant, " GB/token", 1e9);
  } else if (c.file_bytes == 0) {
    c.file_bytes = bytes_in(quant, " GB", 1e9);
  }
  const bool has_fp8_cache =
      has(lower(quant), "kv fp8") || has(lower(quant), "fp8 kv") || (row.batch == "max" && c.format.linear_bits < 9);
  c.cache_bytes = has_fp8_cache ? 1 : 2;
  c.batch = number_in(row.batch, 1);
  c.prompt = row.context == "short" ? 128 : number_in(row.context, kContextUsual);
  c.generated = number_in(row.generated, 128);
  c.context = c.prompt + c.generated / 2;
  if (c.machines.kind == HardwareClass::kGb10 && c.engine == Engine::kVllm) c.sequences_max = kQueueUsual;
  if (has(quant, "MTP")) c.draft = 3;
  if (has(quant, "DSpark") || has(quant, "EAGLE")) c.draft = 5;
  if (row.metric == "prefill") {
    // "pp2048 at depth 8192" is written as a context of 10240.
    double depth = 0;
    if (const std::size_t at = row.note.find("at depth "); at != std::string::npos) {
      depth = std::min(number_in(std::string_view(row.note).substr(at), 0), c.prompt);
    }
    if (c.engine == Engine::kLlamaCpp)
      c.chunk = has(row.note, "ubatch 2048") || depth > 0 || c.prompt >= 2048 ? 2048 : 512;
    const double fresh = std::max(c.prompt - depth, 1.0);
    c.draft = 0;
    return {[=](const Constants& k) { return fresh / prefill_seconds(c, fresh, depth, k); }, {}};
  }
  if (row.metric == "TPOT_speedup") {
    ServeCase one = c;
    one.layout = {};
    return {[=](const Constants& k) { return decode_step(one, k).total() / decode_step(c, k).total(); }, {}};
  }
  if (row.metric == "TPOT") return {[=](const Constants& k) { return decode_step(c, k).total() * 1e3; }, {}};
  const double shared_by = has(row.unit, "/GPU") ? c.layout.ranks() : 1;
  if (row.batch == "max") return {[=](const Constants& k) { return full_rate(c, k) / shared_by; }, {}};
  if (row.metric != "decode" && row.metric != "decode_aggregate") {
    return declined("this metric is not planned");
  }
  return {[=](const Constants& k) { return decode_rate(c, k) / shared_by; }, {}};
}

Question ask_net(const MeasuredRow& row, Machines machines) {
  if (has(row.metric, "busbw")) {
    if (has(row.parallelism, "playbook as written") || has(row.note, "HCA list")) {
      return {[](const Constants& k) { return k[Constant::kBusRateDegraded]; }, "a wrong list of adapters"};
    }
    if (has(row.parallelism, "no MTU")) {
      return {[](const Constants& k) { return k[Constant::kBusRateSmallMtu]; }, "MTU 1500"};
    }
    return {[=](const Constants& k) { return bus_rate(machines, k) / 1e9; }, {}};
  }
  if (row.metric != "all_reduce") return declined("this collective is not planned");
  double bytes = number_in(row.context, 0);
  if (has(row.context, "GiB")) bytes *= kGiB;
  if (has(row.engine, "one-shot")) {
    machines.exchange = Exchange::kOneShot;
  } else if (!has(row.engine, "graph")) {
    machines.exchange = Exchange::kNcclTests;
  }
  const Group group = group_of(machines, row.gpus);
  return {[=](const Constants& k) { return all_reduce_seconds(machines, group, bytes, k) * 1e6; }, {}};
}

TrainCase train_case(const MeasuredRow& row, const spec::ModelFacts& model, Machines machines) {
  TrainCase c;
  c.model = model;
  c.machines = std::move(machines);
  const std::string all = lower(row.quant + " " + row.parallelism + " " + row.model);
  c.arithmetic = has(all, "fp4")                                            ? Arithmetic::kFp4
                 : has(all, "8") && (has(all, "fp8") || has(all, "float8")) ? Arithmetic::kFp8
                                                                            : Arithmetic::kBf16;
  c.tuning = has(all, "lora") ? Tuning::kLora : Tuning::kFull;
  c.trainer = has(row.engine, "torchtitan") ? Trainer::kTorchTitan : Trainer::kMegatron;
  c.sequence = number_in(row.context, 4096);
  c.layout = {.tensor = degree(row.parallelism, "TP"), .pipeline = degree(row.parallelism, "PP")};
  c.context_ranks = degree(row.parallelism, "CP");
  c.virtual_stages = degree(row.parallelism, "VP");
  if (has(row.parallelism, "interleaved")) c.virtual_stages = 4;
  c.layout.replicas = std::max(row.gpus / (c.layout.tensor * c.layout.pipeline * c.context_ranks), 1);
  if (has(row.parallelism, "DP"))
    c.layout.replicas = std::max(degree(row.parallelism, "FSDP"), degree(row.parallelism, "DP"));
  c.sharding = has(row.parallelism, "FSDP") ? Sharding::kAll : Sharding::kOptimizer;
  c.global_batch = number_in(row.batch, 0);
  if (const std::size_t at = row.note.find("MBS "); at != std::string::npos) {
    c.micro_batch = number_in(std::string_view(row.note).substr(at), 1);
  }
  if (has(row.hardware, "500W")) c.power_factor = 0.8;
  // One unit of 128 GB has no room for kept activations beside a 70B model.
  if (c.tuning == Tuning::kLora && c.machines.kind == HardwareClass::kGb10) c.recompute = Recompute::kFull;
  return c;
}

Question ask_train(const MeasuredRow& row, const Machines& machines) {
  auto model = model_of_row(row);
  if (!model) return declined("neither the model nor its size is known");
  if (row.metric == "train_speedup") {
    // A model that fits one node: the gradients of each step cross, the rest does not.
    TrainCase c = train_case(row, *spec::find_model_facts("llama-3.2-3b"), machines);
    TrainCase one = c;
    one.layout.replicas = 1;
    return {
        [=](const Constants& k) { return c.layout.replicas * train_rate_per_gpu(c, k) / train_rate_per_gpu(one, k); },
        "the model is not named: one of 3B"};
  }
  if (row.metric != "train") return declined("this metric is not planned");
  const TrainCase c = train_case(row, *model, machines);
  const double counted = has(row.unit, "/GPU") ? 1 : row.gpus;
  return {[=](const Constants& k) { return train_rate_per_gpu(c, k) * counted; }, {}};
}

// How the four models of Korthikanti et al. ran; the pipeline of 1T was not interleaved.
struct PaperLayout {
  double micro_batch;
  int pipeline;
  int virtual_stages;
};
PaperLayout paper_layout(const spec::ModelFacts& model) {
  const auto billions = static_cast<double>(spec::count_model(model).total) / 1e9;
  if (billions > 750) return {.micro_batch = 1, .pipeline = 64, .virtual_stages = 1};
  if (billions > 350) return {.micro_batch = 1, .pipeline = 35, .virtual_stages = 3};
  if (billions > 100) return {.micro_batch = 1, .pipeline = 8, .virtual_stages = 3};
  return {.micro_batch = 4, .pipeline = 1, .virtual_stages = 1};
}

Question ask_memory(const MeasuredRow& row, const Machines& machines) {
  auto model = model_of_row(row);
  if (!model) return declined("neither the model nor its size is known");
  TrainCase c = train_case(row, *model, machines);
  if (row.metric == "activation_memory") {
    const PaperLayout paper = paper_layout(*model);
    c.micro_batch = paper.micro_batch;
    c.layout.pipeline = paper.pipeline;
    c.virtual_stages = paper.virtual_stages;
    c.global_batch = 0;
    c.recompute = has(row.note, "seqsel") ? Recompute::kSelective : Recompute::kNone;
    c.sequence_parallel = has(row.note, "seq");
    return {[=](const Constants&) { return activation_bytes_per_layer(c) * held_layers(c) / kGiB; }, {}};
  }
  if (row.metric != "peak_memory") return declined("this metric is not planned");
  c.layout.replicas = std::max(row.gpus / (c.layout.tensor * c.layout.pipeline), 1);
  c.micro_batch = degree(row.parallelism, "MBS");
  return {[=](const Constants&) { return train_memory(c).total() / kGiB; }, {}};
}

Question ask_image(const MeasuredRow& row, const Machines& machines) {
  const spec::ImageModelFacts* const model = spec::find_image_model_facts(row.model);
  if (!model) return declined("the image model is not known");
  DrawCase c{.model = *model, .machines = machines};
  const std::string quant = lower(row.quant);
  c.arithmetic = has(quant, "fp4") ? Arithmetic::kFp4 : has(quant, "fp8") ? Arithmetic::kFp8 : Arithmetic::kBf16;
  c.runner = has(row.engine, "compile") || has(row.engine, "TensorRT") ? ImageRunner::kCompiled : ImageRunner::kEager;
  c.split = has(row.parallelism, "Ring") ? ImageSplit::kRing : ImageSplit::kUlysses;
  c.gpus = row.gpus;
  c.width = number_in(row.context, 1024);
  if (const std::size_t x = row.context.find('x'); x != std::string::npos) {
    c.height = number_in(std::string_view(row.context).substr(x), c.width);
  }
  c.steps = number_in(row.generated, c.model.steps);
  c.batch = number_in(row.batch, 1);
  if (has(row.unit, "images/min")) {
    return {[=](const Constants& k) { return 60 * c.batch / draw_time(c, k).total(); }, {}};
  }
  return {[=](const Constants& k) { return draw_time(c, k).total() / c.batch; }, {}};
}

}  // namespace

Question question_of(const MeasuredRow& row) {
  auto machines = machines_of_row(row);
  if (!machines) return declined("the hardware is not catalogued");
  if (row.kind == "serve") return ask_serve(row, *machines);
  if (row.kind == "net") return ask_net(row, *machines);
  if (row.kind == "train") return ask_train(row, *machines);
  if (row.kind == "memory") return ask_memory(row, *machines);
  if (row.kind == "image") return ask_image(row, *machines);
  if (row.kind == "power") {
    const spec::HardwareFacts& facts = *machines->facts;
    const double watts = has(row.parallelism, "idle") ? facts.idle_power.value : facts.load_power.value;
    return {[=](const Constants&) { return watts; }, "catalogue: no accuracy is claimed"};
  }
  return declined(fmt::format("the kind '{}' is not known", printable(row.kind, 20)));
}

}  // namespace yoke::plan
