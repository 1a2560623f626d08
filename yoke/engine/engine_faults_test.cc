// Steps that fail: a backend that throws, a rank that stands still, a line that loses its step. Ranks are threads whose
// world is built again after a failure, as a job's is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/comm/local/local.h"
#include "yoke/engine/engine_connection.h"
#include "yoke/engine/engine_sockets.h"
#include "yoke/engine/rank.h"
#include "yoke/ops/ref/backend.h"
#include "yoke/rank/world.h"

namespace yoke::engine {
namespace {

using namespace literals;
using testing::HasSubstr;
using Tokens = std::vector<text::TokenId>;
using OnStep = std::function<void(int rank, const ops::StepBatch& batch)>;

class RebuiltWorld final : public rank::World {
 public:
  explicit RebuiltWorld(std::unique_ptr<comm::Communicator> comm)
      : World({.rank = comm->rank(),
               .size = comm->size(),
               .local_rank = comm->rank(),
               .local_size = comm->size(),
               .node = "here"}),
        comm_(std::move(comm)) {}
  comm::Communicator& comm() override { return *comm_; }
  comm::Communicator& control() override { return *comm_; }
  std::vector<spec::RailEndpoint> endpoints() const override { return {}; }
  bool recovers() const override { return true; }
  void recover(const Error& failure) override {
    comm_->abort(failure);  // the others hear of it
    const auto ranks = static_cast<std::size_t>(place().size);
    comm_->rebuild({.epoch = ++epoch_, .token = {}, .members = std::vector<spec::Member>(ranks)},
                   Deadline::after(60_s));
  }

 private:
  std::unique_ptr<comm::Communicator> comm_;
  int epoch_ = 1;
};

// The reference, with something that happens before a step.
class FaultyBackend final : public ops::ref::RefBackend {
 public:
  FaultyBackend(int rank, OnStep on_step) : RefBackend({.threads = 1}), rank_(rank), on_step_(std::move(on_step)) {}
  void begin_step(const ops::StepBatch& batch, const ops::PageRoom& room, const ops::Rope& rope) override {
    on_step_(rank_, batch);
    RefBackend::begin_step(batch, room, rope);
  }

 private:
  int rank_;
  OnStep on_step_;
};

struct Outcome {
  std::map<std::uint64_t, Tokens> answers;
  std::map<std::uint64_t, RequestEnded> ended;
  std::vector<EngineRecovered> recoveries;
};

const std::filesystem::path kModel = std::filesystem::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32";

class FaultyEngine {
 public:
  FaultyEngine(int ranks, const OnStep& on_step, Seconds step_limit = 10_s)
      : FaultyEngine(ranks, on_step, step_limit, make_engine_sockets()) {}

  EngineConnection& connection() { return client_; }
  Outcome wait_for(std::size_t count) {
    Outcome outcome;
    const Deadline deadline = Deadline::after(120_s);
    while (outcome.ended.size() < count) {
      const auto event = client_.next(deadline);
      if (!event) throw Error(ErrorCode::kTimeout, "the engine did not answer");
      if (const auto* token = std::get_if<TokenEvent>(&*event)) outcome.answers[token->id].push_back(token->token.id);
      if (const auto* end = std::get_if<RequestEnded>(&*event)) outcome.ended.emplace(end->id, *end);
      if (const auto* recovered = std::get_if<EngineRecovered>(&*event)) outcome.recoveries.push_back(*recovered);
    }
    return outcome;
  }

 private:
  FaultyEngine(int ranks, const OnStep& on_step, Seconds step_limit, EngineSocketPair line)
      : client_(std::move(line.of_client), EngineConnection::Ends::kConnection) {
    auto comms = comm::local::make_local(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::optional<Socket> own;
      if (rank == 0) own = std::move(line.of_engine);
      threads_.emplace_back(
          [=, own = std::move(own), comm = std::move(comms[static_cast<std::size_t>(rank)])]() mutable {
            RebuiltWorld world(std::move(comm));
            const auto make = [&](const std::string&, const ops::BackendOptions&) {
              return std::make_unique<FaultyBackend>(rank, on_step);
            };
            try {
              run_engine_rank(world, {.model = kModel, .threads = 1}, std::move(own),
                              {.make_backend = make, .step_limit = step_limit});
            } catch (const Error&) {  // rank 0 has told the front
            }
          });
    }
  }

  std::vector<std::jthread> threads_;
  EngineConnection client_;  // goes first: the line closes, and the threads end
};

struct Golden {
  Tokens ids, greedy;
};
std::vector<Golden> golden_cases() {
  std::vector<Golden> cases;
  const Document document = parse_json(read_file(kModel / "golden.json"), "golden.json");
  for (const Document& one : document.find("cases")->items) {
    if (one.find("greedy") == nullptr) continue;
    cases.push_back({from_json<Tokens>(*one.find("ids")), from_json<Tokens>(*one.find("greedy"))});
  }
  return cases;
}
Request request_of(std::uint64_t id, const Golden& one) {
  Request request{.id = id, .prompt = one.ids, .answer_max = std::ssize(one.greedy)};
  request.sampling.temperature = 0;
  return request;
}

class EngineFaults : public testing::TestWithParam<int> {};  // ranks; three are stages

TEST_P(EngineFaults, ABackendThatThrowsForARequestCostsThatRequestOnly) {
  constexpr text::TokenId kPoison = 733;
  const int victim = GetParam() - 1;
  FaultyEngine engine(GetParam(), [&](int rank, const ops::StepBatch& batch) {
    const bool is_there = std::find(batch.ids.begin(), batch.ids.end(), kPoison) != batch.ids.end();
    if (rank == victim && is_there) throw Error(ErrorCode::kInternal, "the kernel failed");
  });
  const auto cases = golden_cases();
  const auto first = std::find_if(cases.begin(), cases.end(), [&](const Golden& one) {
    return std::find(one.ids.begin(), one.ids.end(), kPoison) == one.ids.end() &&
           std::find(one.greedy.begin(), one.greedy.end(), kPoison) == one.greedy.end();
  });
  ASSERT_NE(first, cases.end());
  for (std::uint64_t id = 1; id <= 4; ++id) engine.connection().submit(request_of(id, *first));
  Request bad = request_of(9, *first);
  bad.prompt.push_back(kPoison);
  engine.connection().submit(bad);
  const Outcome outcome = engine.wait_for(5);
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(outcome.answers.at(id), first->greedy) << id;
  ASSERT_TRUE(outcome.ended.at(9).error.has_value());
  EXPECT_THAT(outcome.ended.at(9).error->message(), HasSubstr("failed 3 times"));
  EXPECT_THAT(outcome.ended.at(9).error->message(), HasSubstr("the kernel failed"));
}

TEST_P(EngineFaults, EveryRankMayFailAgainAndAgainAndTokensStayTheSame) {
  std::atomic<int> steps{0};
  const int often = 29 * GetParam();  // so seldom that every request gets further in between
  FaultyEngine engine(GetParam(), [&](int rank, const ops::StepBatch&) {
    const int step = ++steps;
    if (step % often == 0) throw Error(ErrorCode::kUnavailable, fmt::format("rank {} lost its device", rank));
  });
  const auto cases = golden_cases();
  for (std::uint64_t id = 1; id <= 8; ++id) engine.connection().submit(request_of(id, cases[id % cases.size()]));
  const Outcome outcome = engine.wait_for(8);
  for (std::uint64_t id = 1; id <= 8; ++id) EXPECT_EQ(outcome.answers.at(id), cases[id % cases.size()].greedy) << id;
  EXPECT_GT(outcome.recoveries.size(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Ranks, EngineFaults, testing::Values(1, 2, 3));

TEST(EngineWaits, ARankThatStandsInAStepIsNamedWithinTheDeadline) {
  std::atomic<int> steps{0};
  FaultyEngine engine(
      2,
      [&](int rank, const ops::StepBatch&) {
        if (rank == 1 && ++steps == 6) std::this_thread::sleep_for(std::chrono::seconds(4));
      },
      1_s);
  const Golden one = golden_cases().front();
  engine.connection().submit(request_of(1, one));
  const Outcome outcome = engine.wait_for(1);
  EXPECT_EQ(outcome.answers.at(1), one.greedy);
  ASSERT_EQ(outcome.recoveries.size(), 1U) << "it was not waited for";
  EXPECT_THAT(outcome.recoveries[0].cause, HasSubstr("rank 1"));
  EXPECT_LT(outcome.recoveries[0].after.value, 3.9) << "from the deadline to the next step";
}

}  // namespace
}  // namespace yoke::engine
