// The phase about a model that no single node holds. In a lab it is the small model that ships with yoke, deepened by
// layers that add nothing but bytes: so what it answers is known from the small one. On a cluster it is the given one.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/gameday/answers.h"
#include "yoke/gameday/phases.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

// A node of 140 MiB has about 110 MiB, of which the engine leaves some 36 MiB free: 90 MB of weights and the cache of
// 96 tokens (200 kB each) do not fit, and half of both does. Larger would prove no more, and take longer: every token
// reads all of it.
constexpr const char* kModelSize = "90MB";
constexpr const char* kContext = "96";
constexpr const char* kPrompt = "What is the 13 Gb/s state?";

Answer answer_of(const Document& told) {
  Answer answer{.text = text_at(told, "text")};
  for (const Document& token : list_at(told, "tokens").items) answer.tokens.push_back(token.text);
  return answer;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// One node says that the model does not fit, before it reads any of it.
void see_refusal(Venue& venue, Scene& scene) {
  if (const auto why = venue.why_no_memory_limit()) return scene.say("no refusal to be seen: " + *why);
  const Outcome refused =
      scene.run(with(question(venue.model_played), {"--nodes", "1", "--cluster", venue.cluster_word(), "--json"}));
  const auto told = try_to([&] { return parse_json(refused.out, "the refusal"); });
  const Document* const code = told ? find_at(*told, "error.code") : nullptr;
  const Document* const message = told ? find_at(*told, "error.message") : nullptr;
  if (message) scene.say(message->text);
  if (message) scene.block(HtmlNote{.title = "One node", .text = message->text});
  scene.expect(refused.exit_status == info(ErrorCode::kExhausted).exit_status && code && code->text == "exhausted",
               "one node refuses the model: it does not fit");
}

void tell_speed(Scene& scene, const Document& told) {
  for (const auto& [name, path] :
       {std::pair{"prefill", "prefill_tokens_per_second"}, std::pair{"decode", "decode_tokens_per_second"}}) {
    scene.figure({.name = name, .value = number_at(told, path), .unit = "tokens/s"});
  }
  const Document& weights = list_at(told, "weights_bytes_each");
  for (std::size_t rank = 0; rank < weights.items.size(); ++rank) {
    scene.figure({.name = fmt::format("weights of rank {}", rank),
                  .value = number_at(told, fmt::format("weights_bytes_each.{}", rank)) / 1e6,
                  .unit = "MB"});
  }
}

// What a node as large as this machine answers, alone.
void compare_with_one_node(Venue& venue, Scene& scene) {
  for (const fs::path& model : {venue.model_played, *venue.options().model}) {
    const Answer alone = answer_of(scene.run_json(with(question(model), {"--ranks", "1"})));
    scene.expect(alone.tokens == venue.answer->tokens,
                 fmt::format("one large node with {} gives the same {} tokens",
                             model == venue.model_played ? "the same model" : "the model before it was deepened",
                             venue.answer->tokens.size()));
  }
}

}  // namespace

std::vector<std::string> question(const fs::path& model) {
  return {"run", model, "-p", kPrompt, "-n", "48", "--temperature", "0", "--context", kContext};
}

// The nodes of a lab share this machine's processors, and each believes that all are its own.
std::vector<std::string> on_all_nodes(const Venue& venue) {
  std::vector<std::string> words = {"--cluster", venue.cluster_word()};
  if (!venue.lab()) return words;
  const std::size_t threads = std::thread::hardware_concurrency() / venue.cluster().nodes.size();
  return with(words, {"--threads", fmt::format("{}", std::max<std::size_t>(1, threads))});
}

// In a lab half the bits in the cache make room for a few turns.
std::vector<std::string> conversation(const Venue& venue) {
  const std::vector<std::string> words = with({"chat", venue.model_played}, on_all_nodes(venue));
  return venue.lab() ? with(words, {"--context", "384", "--cache-type", "bf16"}) : words;
}

void play_model(Venue& venue, Scene& scene) {
  const fs::path given = *venue.options().model;
  if (venue.lab()) {
    venue.model_played = venue.folder() / "deep";
    scene.run_json({"model", "deepen", given, venue.model_played, "--size", kModelSize});
    see_refusal(venue, scene);
  } else {
    venue.model_played = given;
    scene.say("whether one node holds it is not asked: " + venue.why_no_memory_limit().value_or(""));
  }
  const Document told = scene.run_json(with(question(venue.model_played), on_all_nodes(venue)));
  const Answer answer = answer_of(told);
  scene.say(fmt::format("{} {}", kPrompt, answer.text));
  scene.block(HtmlFacts{{{"asked", kPrompt}, {"answered", answer.text}, {"over", text_at(told, "transport")}}});
  scene.expect(number_at(told, "ranks") == static_cast<double>(venue.cluster().nodes.size()),
               "every node holds its part of the model");
  scene.expect(!answer.tokens.empty(), "the model answers");
  tell_speed(scene, told);
  venue.answer = answer;
  if (venue.lab()) compare_with_one_node(venue, scene);
}

}  // namespace yoke
