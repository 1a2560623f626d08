// The phase about a model that no single node holds. In a lab it is the small model that ships with yoke, grown by
// layers that add nothing but bytes: so what it answers is known from the small one. On a cluster it is the given one.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/gameday/answers.h"
#include "yoke/gameday/phases.h"

namespace yoke::gameday {
namespace fs = std::filesystem;
namespace {

// A node of 176 MiB has about 140 MiB, of which the engine leaves some 36 MiB free: 90 MB of weights, the work space of
// a step and the cache of a short answer do not fit into one, and their parts do into two.
constexpr const char* kModelSize = "90MB";
constexpr const char* kPrompt = "What is the 13 Gb/s state?";

Answer answer_of(const Document& answer_json) {
  Answer answer{.text = text_at(answer_json, "text")};
  for (const Document& token : list_at(answer_json, "tokens").items) answer.tokens.push_back(token.text);
  return answer;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// One node says that the model does not fit, before it reads any of it.
void see_refusal(Environment& environment, PhaseRun& phase_run) {
  if (const auto why = environment.why_no_memory_limit()) return phase_run.print("no refusal to be seen: " + *why);
  const Outcome refused = phase_run.run(
      with(question(environment.model_played), {"--nodes", "1", "--cluster", environment.cluster_word(), "--json"}));
  const auto answer_json = try_to([&] { return parse_json(refused.out, "the refusal"); });
  const Document* const code = answer_json ? find_at(*answer_json, "error.code") : nullptr;
  const Document* const message = answer_json ? find_at(*answer_json, "error.message") : nullptr;
  if (message) phase_run.print(message->text);
  if (message) phase_run.block(report::HtmlNote{.title = "One node", .text = message->text});
  const bool is_refused =
      refused.exit_status == info(ErrorCode::kExhausted).exit_status && code && code->text == "exhausted";
  phase_run.expect(is_refused, "one node refuses the model: it does not fit");
  if (environment.expectation) {
    phase_run.expect(is_refused != environment.expectation->one_node_holds_it, "the plan predicted it of one node");
  }
}

void report_speed(const Environment& environment, PhaseRun& phase_run, const Document& answer_json) {
  phase_run.figure(
      {.name = "prefill", .value = number_at(answer_json, "prefill_tokens_per_second"), .unit = "tokens/s"});
  Figure decode{.name = "decode", .value = number_at(answer_json, "decode_tokens_per_second"), .unit = "tokens/s"};
  if (const auto& expected = environment.expectation) {
    decode.note = fmt::format("{:.3g} planned, {:+.0f}%", expected->rate, 100 * (decode.value / expected->rate - 1));
    phase_run.block(report::HtmlFacts{
        {{"planned", fmt::format("{:.3g} tokens/s ({:.3g} to {:.3g})", expected->rate, expected->low, expected->high)},
         {"measured", fmt::format("{:.3g} tokens/s", decode.value)}}});
    // Not a verdict: what else the machine does meanwhile changes one of the two.
    phase_run.print(fmt::format("{:.3g} tokens/s planned ({:.3g} to {:.3g}), {:.3g} measured", expected->rate,
                                expected->low, expected->high, decode.value));
  }
  phase_run.figure(std::move(decode));
  const Document& weights = list_at(answer_json, "weights_bytes_each");
  for (std::size_t rank = 0; rank < weights.items.size(); ++rank) {
    phase_run.figure({.name = fmt::format("weights of rank {}", rank),
                      .value = number_at(answer_json, fmt::format("weights_bytes_each.{}", rank)) / 1e6,
                      .unit = "MB"});
  }
}

// What a node as large as this machine answers, alone.
void compare_with_one_node(Environment& environment, PhaseRun& phase_run) {
  for (const fs::path& model : {environment.model_played, *environment.options().model}) {
    const Answer alone = answer_of(phase_run.run_json(with(question(model), {"--ranks", "1"})));
    phase_run.expect(alone.tokens == environment.answer->tokens,
                     fmt::format("one large node with {} gives the same {} tokens",
                                 model == environment.model_played ? "the same model" : "the model before it was grown",
                                 environment.answer->tokens.size()));
  }
}

}  // namespace

std::vector<std::string> question(const fs::path& model) {
  return {"run", model, "-p", kPrompt, "-n", kAnswer, "--temperature", "0", "--context", kContext};
}

// The nodes of a lab share this machine's processors, and each believes that all are its own.
std::vector<std::string> on_all_nodes(const Environment& environment) {
  std::vector<std::string> words = {"--cluster", environment.cluster_word()};
  if (!environment.lab()) return words;
  return with(words, {"--threads", fmt::format("{}", threads_of_rank(environment))});
}

std::size_t threads_of_rank(const Environment& environment) {
  if (!environment.lab()) return 0;
  return std::max<std::size_t>(1, std::thread::hardware_concurrency() / environment.cluster().nodes.size());
}

void prepare_model(Environment& environment, PhaseRun& phase_run) {
  if (!environment.model_played.empty()) return;
  environment.model_played = *environment.options().model;
  if (!environment.lab()) return;
  const fs::path deep = environment.folder() / "deep";
  phase_run.run_json({"model", "grow", environment.model_played, deep, "--size", kModelSize});
  environment.model_played = deep;
}

// In a lab half the bits in the cache make room for a few turns.
std::vector<std::string> conversation(const Environment& environment) {
  const std::vector<std::string> words = with({"chat", environment.model_played}, on_all_nodes(environment));
  return environment.lab() ? with(words, {"--context", "384", "--cache-type", "bf16"}) : words;
}

void run_model_phase(Environment& environment, PhaseRun& phase_run) {
  prepare_model(environment, phase_run);
  if (environment.lab()) {
    see_refusal(environment, phase_run);
  } else {
    phase_run.print("whether one node holds it is not asked: " + environment.why_no_memory_limit().value_or(""));
  }
  const Document answer_json = phase_run.run_json(with(question(environment.model_played), on_all_nodes(environment)));
  const Answer answer = answer_of(answer_json);
  phase_run.print(fmt::format("{} {}", kPrompt, answer.text));
  phase_run.block(
      report::HtmlFacts{{{"asked", kPrompt}, {"answered", answer.text}, {"over", text_at(answer_json, "transport")}}});
  phase_run.expect(number_at(answer_json, "ranks") == static_cast<double>(environment.cluster().nodes.size()),
                   "every node holds its part of the model");
  phase_run.expect(!answer.tokens.empty(), "the model answers");
  report_speed(environment, phase_run, answer_json);
  environment.answer = answer;
  if (environment.lab()) compare_with_one_node(environment, phase_run);
}

}  // namespace yoke::gameday
