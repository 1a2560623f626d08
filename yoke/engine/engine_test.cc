// The engine as its clients see it: ranks are threads here, the goldens say what is right.
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/rng_testing.h"
#include "yoke/engine/engine_threads_testing.h"
#include "yoke/weights/made_weights.h"
#include "yoke/weights/make_model.h"
#include "yoke/weights/safetensors_file.h"

namespace yoke::engine {
namespace {

namespace fs = std::filesystem;
using namespace literals;

using Tokens = std::vector<text::TokenId>;

fs::path golden(const char* name) { return fs::path(YOKE_SOURCE_DIR) / "tests/golden" / name; }

struct GoldenAnswer {
  Tokens ids, greedy;
};
std::vector<GoldenAnswer> golden_cases(const fs::path& folder) {
  std::vector<GoldenAnswer> cases;
  const Document document = parse_json(read_file(folder / "golden.json"), "golden.json");
  for (const Document& one : document.find("cases")->items) {
    if (one.find("greedy") == nullptr) continue;
    cases.push_back({from_json<Tokens>(*one.find("ids")), from_json<Tokens>(*one.find("greedy"))});
  }
  return cases;
}

Request greedy_request(std::uint64_t id, const GoldenAnswer& one) {
  Request request{.id = id, .prompt = one.ids, .answer_max = std::ssize(one.greedy)};
  request.sampling.temperature = 0;
  return request;
}

class EngineOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, EngineOnRanks, testing::Values(1, 2, 4));

TEST_P(EngineOnRanks, SeveralSequencesAtOnceGiveTheGoldenTokens) {
  // Chunks of 7 tokens: prompts of several requests come in pieces, while others answer already.
  Engine engine({.model = golden("llama-f32"), .chunk_tokens = 7}, GetParam());
  const auto cases = golden_cases(golden("llama-f32"));
  ASSERT_GE(cases.size(), 2U);
  for (std::size_t i = 0; i < cases.size(); ++i) engine.connection().submit(greedy_request(i + 1, cases[i]));
  const auto answers = engine.wait_for(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(answers.at(i + 1).tokens, cases[i].greedy) << i;
    EXPECT_EQ(answers.at(i + 1).ended->reason, FinishReason::kLength);
  }
}

TEST_P(EngineOnRanks, SampledTokensDependOnTheSeedAndNotOnTheCompany) {
  const auto cases = golden_cases(golden("llama-bf16-tied"));
  Request request{.id = 1, .prompt = cases[0].ids, .answer_max = 30};
  request.sampling = {.temperature = 1.5F, .top_p = 0.95F, .frequency_penalty = 0.5F, .seed = 42};
  Tokens alone, in_company, other_seed;
  {
    Engine engine({.model = golden("llama-bf16-tied")}, GetParam());
    alone = engine.ask(request).tokens;
    Request other = request;
    other.sampling.seed = 43;
    other_seed = engine.ask(other).tokens;
  }
  Engine engine({.model = golden("llama-bf16-tied"), .chunk_tokens = 5}, GetParam());
  for (std::uint64_t id = 2; id < 6; ++id) engine.connection().submit(greedy_request(id, cases[id % cases.size()]));
  engine.connection().submit(request);
  in_company = engine.wait_for(5)[1].tokens;
  EXPECT_EQ(alone.size(), 30U);
  EXPECT_EQ(alone, in_company);
  EXPECT_NE(alone, other_seed);
}

TEST_P(EngineOnRanks, AnAnswerTakenUpAgainGoesOnAsItWouldHave) {
  Engine engine({.model = golden("llama-f32")}, GetParam());
  const GoldenAnswer one = golden_cases(golden("llama-f32"))[0];
  Request request = greedy_request(1, one);
  request.sampling = {.temperature = 2, .repetition_penalty = 1.2F, .seed = 7};
  const Tokens whole = engine.ask(request).tokens;
  for (const std::size_t known : {std::size_t{1}, std::size_t{10}, whole.size() - 1}) {
    request.answer.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(known));
    Tokens continued = request.answer;
    for (const text::TokenId id : engine.ask(request).tokens) continued.push_back(id);
    EXPECT_EQ(continued, whole) << known;
  }
}

TEST_P(EngineOnRanks, LogitsOfThePromptAreThoseOfTheGolden) {
  const fs::path folder = golden("llama-f32");
  const weights::SafetensorsFile file(folder / "golden.safetensors");
  const tensor::Tensor wanted = file.view(*file.find("logits.0"));
  Engine engine({.model = folder, .chunk_tokens = 4}, GetParam());
  Request request = greedy_request(1, golden_cases(folder)[0]);
  request.logits = LogitsWanted::kAll;
  engine.connection().submit(request);
  double error = 0, largest = 0;
  const auto answers = engine.wait_for(1, [&](const EngineEvent& event) {
    const auto* const logits = std::get_if<LogitsEvent>(&event);
    if (logits == nullptr) return;
    for (std::int64_t row = 0; row < logits->rows.extent(0); ++row) {
      for (std::int64_t v = 0; v < wanted.extent(1); ++v) {
        const double golden = wanted.row<float>(logits->position + row)[v];
        largest = std::max(largest, std::abs(golden));
        error = std::max(error, std::abs(golden - static_cast<double>(logits->rows.row<float>(row)[v])));
      }
    }
  });
  EXPECT_EQ(answers.at(1).logit_rows, wanted.extent(0));
  EXPECT_LT(error / largest, 1e-4);
  request.id = 2;
  request.logits = LogitsWanted::kLast;
  request.answer_max = 0;
  const Answer last = engine.ask(request);
  EXPECT_EQ(last.logit_rows, 1);
  EXPECT_TRUE(last.tokens.empty());
}

TEST_P(EngineOnRanks, AnyRequestIdIsCarried) {
  Engine engine({.model = golden("llama-f32")}, GetParam());
  const auto cases = golden_cases(golden("llama-f32"));
  const std::vector<std::uint64_t> ids = {0, std::uint64_t{1} << 62, (std::uint64_t{1} << 63) - 1,
                                          std::uint64_t{1} << 63, ~std::uint64_t{0}};
  for (const std::uint64_t id : ids) engine.connection().submit(greedy_request(id, cases[0]));
  const auto answers = engine.wait_for(ids.size());
  for (const std::uint64_t id : ids) EXPECT_EQ(answers.at(id).tokens, cases[0].greedy) << id;
}

TEST_P(EngineOnRanks, ExpertsGiveTheGoldenTokens) {
  for (const char* name : {"qwen3moe-a", "qwen3moe-b"}) {
    Engine engine({.model = golden(name), .chunk_tokens = 5}, GetParam());
    const auto cases = golden_cases(golden(name));
    for (std::size_t i = 0; i < cases.size(); ++i) engine.connection().submit(greedy_request(i + 1, cases[i]));
    const auto answers = engine.wait_for(cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(answers.at(i + 1).tokens, cases[i].greedy) << name << i;
  }
}

// Three ranks cannot share eight heads, and four cannot share groups of int4: layers are cut instead.
TEST(EngineStages, GiveWhatOneRankGives) {
  struct Layout {
    const char* name;
    int ranks;
  };
  for (const auto& [name, ranks] : {Layout{"llama-f32", 3}, Layout{"llama-w4a16", 4}, Layout{"qwen3moe-b", 3}}) {
    Engine engine({.model = golden(name), .chunk_tokens = 7}, ranks);
    const auto cases = golden_cases(golden(name));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Request request = greedy_request(i + 1, cases[i]);
      if (i == 0) request.logits = LogitsWanted::kAll;
      engine.connection().submit(request);
    }
    const auto answers = engine.wait_for(cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(answers.at(i + 1).tokens, cases[i].greedy) << name << i;
    EXPECT_EQ(answers.at(1).logit_rows, std::ssize(cases[0].ids));
  }
}

TEST(EngineTest, ARequestOverTheLimitIsAnErrorOfThatRequest) {
  Engine engine({.model = golden("llama-f32")}, 1);
  const GoldenAnswer one = golden_cases(golden("llama-f32"))[0];
  Request large = greedy_request(1, one);
  large.prompt.assign(20'000'000, 1);
  EXPECT_EQ(engine.ask(large).ended->error->code(), ErrorCode::kInvalid);
  Request twice = greedy_request(2, one);
  twice.answer_max = 1000;
  engine.connection().submit(twice);
  EXPECT_ERROR(engine.connection().submit(twice), ErrorCode::kConflict, "a request with the number 2 is there already");
  engine.connection().cancel(2);
  EXPECT_EQ(engine.wait_for(1).at(2).ended->reason, FinishReason::kCancelled);
  EXPECT_EQ(engine.ask(greedy_request(3, one)).tokens, one.greedy);
}

// Random requests, many at once, with shared beginnings and a cache that is too small for all of them: every answer is
// that of the request alone.
TEST(EngineTest, RandomRequestsAtOnceAnswerAsTheyDoAlone) {
  const char* const wanted = std::getenv("YOKE_RANDOM_REQUESTS");  // scripts/soak-engine asks for more
  const std::uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 200;
  Random random(7);
  std::vector<Request> requests;
  for (std::uint64_t id = 1; id <= count; ++id) {
    Request request{
        .id = id * 0x9e3779b97f4a7c15ULL, .prompt = {}, .answer_max = static_cast<std::int64_t>(1 + random.below(40))};
    const std::uint64_t shared = random.below(3);
    for (std::uint64_t i = 0; i < 20 * shared; ++i)
      request.prompt.push_back(static_cast<text::TokenId>(1 + i * (shared + 1) % 700));
    for (std::uint64_t i = 1 + random.below(30); i > 0; --i)
      request.prompt.push_back(static_cast<text::TokenId>(random.below(768)));
    request.stop_ids = {static_cast<text::TokenId>(random.below(768))};
    request.sampling = {.temperature = random.below(2) == 0 ? 0.0F : 1.0F, .top_p = 0.9F, .seed = random.below(100)};
    if (random.below(4) == 0) request.sampling.repetition_penalty = 1.2F;
    requests.push_back(request);
  }
  std::map<std::uint64_t, Tokens> alone;
  {
    Engine engine({.model = golden("llama-f32"), .sequences_max = 1}, 1);
    for (const Request& request : requests) alone[request.id] = engine.ask(request).tokens;
  }
  for (const int ranks : {1, 2, 3}) {  // the last as stages
    Engine engine({.model = golden("llama-f32"), .context_max = 160, .cache_tokens = 320, .sequences_max = 16}, ranks);
    for (const Request& request : requests) engine.connection().submit(request);
    for (const auto& [id, answer] : engine.wait_for(requests.size())) EXPECT_EQ(answer.tokens, alone.at(id)) << id;
  }
}

TEST(EngineTest, ReportsHowFarALongPromptIsAndAnswersTheSame) {
  Engine engine({.model = golden("llama-f32")}, 2);
  GoldenAnswer one = golden_cases(golden("llama-f32"))[0];
  Tokens answers[2];
  for (std::uint64_t id = 1; id <= 2; ++id) {  // the second in larger pieces: how fast it goes is known by then
    Request request = greedy_request(id, one);
    while (request.prompt.size() < 100) request.prompt.push_back(request.prompt[request.prompt.size() % 7]);
    std::int64_t done = 0;
    engine.connection().submit(request);
    answers[id - 1] = engine
                          .wait_for(1,
                                    [&](const EngineEvent& event) {
                                      const auto* const read = std::get_if<PromptProgress>(&event);
                                      if (read == nullptr) return;
                                      EXPECT_GT(read->done, done);
                                      EXPECT_EQ(read->total, 100);
                                      done = read->done;
                                    })[id]
                          .tokens;
    EXPECT_TRUE(id == 2 || done >= 16) << "the first step is small: " << done;
  }
  EXPECT_FALSE(answers[0].empty());
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(EngineTest, WhatDoesNotFitTheCacheWaits) {
  // Room for one of these at a time: 48 tokens of cache, of which each needs between 33 and 48.
  Engine engine({.model = golden("llama-f32"), .context_max = 48}, 1);
  const auto cases = golden_cases(golden("llama-f32"));
  for (std::uint64_t id = 1; id <= 4; ++id) engine.connection().submit(greedy_request(id, cases[0]));
  const auto answers = engine.wait_for(4);
  for (const auto& [id, answer] : answers) EXPECT_EQ(answer.tokens, cases[0].greedy) << id;
}

TEST(EngineTest, ACancelledRequestEndsAndTheOthersGoOn) {
  Engine engine({.model = golden("llama-f32")}, 2);
  const auto cases = golden_cases(golden("llama-f32"));
  Request endless = greedy_request(1, cases[0]);
  endless.answer_max = 1900;
  engine.connection().submit(endless);
  engine.connection().submit(greedy_request(2, cases[1]));
  int tokens_of_endless = 0;
  const auto answers = engine.wait_for(2, [&](const EngineEvent& event) {
    const auto* const token = std::get_if<TokenEvent>(&event);
    if (token != nullptr && token->id == 1 && ++tokens_of_endless == 30) engine.connection().cancel(1);
  });
  EXPECT_EQ(answers.at(1).ended->reason, FinishReason::kCancelled);
  EXPECT_LT(answers.at(1).tokens.size(), 1000U);
  EXPECT_EQ(answers.at(2).tokens, cases[1].greedy);
  EXPECT_EQ(engine.ask(greedy_request(3, cases[0])).tokens, cases[0].greedy);
}

TEST(EngineTest, AnAnswerEndsAtAStopToken) {
  Engine engine({.model = golden("llama-f32")}, 1);
  const GoldenAnswer one = golden_cases(golden("llama-f32"))[0];
  Request request = greedy_request(1, one);
  request.stop_ids = {one.greedy[5]};
  const Answer answer = engine.ask(request);
  EXPECT_EQ(answer.tokens, Tokens(one.greedy.begin(), one.greedy.begin() + 6));
  EXPECT_EQ(answer.ended->reason, FinishReason::kStop);
}

TEST(EngineTest, RequestsThatMakeNoSenseAreRefusedAndNothingElseHappens) {
  Engine engine({.model = golden("llama-f32"), .context_max = 64}, 2);
  const GoldenAnswer one = golden_cases(golden("llama-f32"))[0];
  const auto refusal = [&](const std::function<void(Request&)>& change) {
    Request request = greedy_request(7, one);
    change(request);
    const Answer answer = engine.ask(request);
    return answer.ended->error ? answer.ended->error->message() : "not refused";
  };
  EXPECT_EQ(refusal([](Request& r) { r.prompt.clear(); }), "the prompt has no tokens");
  EXPECT_EQ(refusal([](Request& r) { r.prompt.resize(64); }),
            "the prompt has 64 tokens, but a sequence has room for 64 here");
  EXPECT_EQ(refusal([](Request& r) { r.prompt[0] = 768; }),
            "the prompt has the token 768, but the vocabulary has 768 ids");
  EXPECT_EQ(refusal([](Request& r) { r.sampling.top_p = 0; }), "top_p must be above 0 and at most 1");
  EXPECT_EQ(refusal([](Request& r) { r.prompt.resize(60); }), "not refused");  // the answer is cut to what there is
  EXPECT_EQ(engine.ask(greedy_request(8, one)).tokens, one.greedy);
}

// Until the client is told that the engine fails.
void run_to_failure(const EngineOptions& options, int ranks) {
  Engine engine(options, ranks);
  while (engine.connection().next(Deadline::after(20_s))) {
  }
}

TEST(EngineTest, WhatCannotRunIsReportedToTheClient) {
  EXPECT_ERROR(run_to_failure({.model = "/nowhere"}, 1), ErrorCode::kNotFound, "there is no model folder '/nowhere'");
  EXPECT_ERROR(run_to_failure({.model = golden("llama-f32")}, 11), ErrorCode::kInvalid, "11 stages cannot share",
               "use at most");
  EXPECT_ERROR(run_to_failure({.model = golden("llama-f32"), .context_max = 4000}, 1), ErrorCode::kInvalid,
               "the model was trained for 2048 tokens, not for 4000");
  EXPECT_ERROR(run_to_failure({.model = golden("llama-f32"), .backend = "abacus"}, 1), ErrorCode::kUnsupported,
               "there is no backend 'abacus'");
  EXPECT_ERROR(run_to_failure({.model = golden("llama-f32"), .cache_tokens = std::int64_t{1} << 40}, 2),
               ErrorCode::kExhausted, "the model does not fit")
      << "petabytes of cache";
}

// What 'yoke bench calibrate' measures is the engine that runs files.
TEST(EngineWeights, MadeInMemoryAnswerAsTheirFilesDo) {
  const ScratchDir scratch;
  const weights::MakeModelOptions made{.shape = {.name = "",
                                                 .layers = 2,
                                                 .width = 256,
                                                 .heads = 4,
                                                 .kv_heads = 2,
                                                 .head_width = 64,
                                                 .mlp_width = 512,
                                                 .vocabulary = 2048,
                                                 .context = 256},
                                       .format = weights::MakeFormat::kW4a16};
  weights::make_model(scratch.path() / "model", made);
  const Request request{.id = 1, .prompt = {10, 20, 30}, .answer_max = 12};
  Engine from_files({.model = scratch.path() / "model"}, 2);
  Engine in_memory({}, 2, make_engine_sockets(), {.open_weights = [&]() -> std::unique_ptr<weights::WeightSource> {
                     return std::make_unique<weights::MadeWeights>(made);
                   }});
  const Answer expected = from_files.ask(request);
  ASSERT_EQ(expected.tokens.size(), 12U);
  EXPECT_EQ(in_memory.ask(request).tokens, expected.tokens);
}

}  // namespace
}  // namespace yoke::engine
