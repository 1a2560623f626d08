#include "yoke/engine/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/engine/engine_threads_testing.h"

namespace yoke::engine {
namespace {

std::vector<spec::RankTrace> traces_of(Engine& engine) {
  engine.connection().ask_account();
  while (true) {
    const auto event = engine.connection().next(Deadline::after(Seconds{60}));
    if (!event) throw Error(ErrorCode::kTimeout, "no account came");
    if (const auto* account = std::get_if<EngineAccount>(&*event)) return account->traces;
  }
}

std::int64_t count(const spec::RankTrace& trace, std::string_view name) {
  return std::ranges::count_if(trace.spans, [&](const spec::TraceSpan& span) {
    return trace.names[static_cast<std::size_t>(span.name)] == name;
  });
}

// Two ranks share each layer, three are stages: the rank that has a layer computes it once for each token.
TEST(StepTrace, HasEveryLayerOfEveryStepOnOneClock) {
  const std::filesystem::path folder = std::filesystem::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32";
  const Document config = parse_json(read_file(folder / "config.json"), "config.json");
  const auto layers = std::stoll(config.find("num_hidden_layers")->text);
  for (const int ranks : {1, 2, 3}) {
    Engine engine({.model = folder, .trace = true}, ranks);
    Request request{.id = 1, .prompt = {1, 2, 3, 4, 5}, .answer_max = 8};
    request.sampling.temperature = 0;
    const auto made = std::ssize(engine.ask(request).tokens);
    const std::vector<spec::RankTrace> traces = traces_of(engine);
    ASSERT_EQ(traces.size(), static_cast<std::size_t>(ranks));
    std::int64_t sum = 0;
    std::set<std::int64_t> first_layers;
    for (const spec::RankTrace& trace : traces) {
      sum += count(trace, "q, k, v");
      first_layers.insert(trace.first_layer);
      EXPECT_EQ(trace.clock.empty(), false);
      EXPECT_EQ(trace.dropped, 0);
      EXPECT_GE(count(trace, "step of answers"), made - 1) << ranks;
      EXPECT_EQ(count(trace, "step of a prompt"), 1) << ranks;
      EXPECT_EQ(count(trace, "all-reduce") > 0, ranks == 2) << "three are stages";
      EXPECT_EQ(count(trace, "receive") > 0, ranks == 3 && trace.stage > 0);
      for (const spec::TraceSpan& span : trace.spans) EXPECT_GE(span.duration, 0);
    }
    // The prompt's step makes the first token.
    EXPECT_EQ(sum, made * layers * (ranks == 2 ? 2 : 1)) << ranks;
    EXPECT_EQ(first_layers.size(), ranks == 3 ? 3U : 1U);
    // An idle engine adds nothing.
    EXPECT_EQ(traces_of(engine).at(0).spans.size(), traces.at(0).spans.size());
  }
}

TEST(StepTrace, IsNotKeptWhereNobodyAsks) {
  const std::filesystem::path folder = std::filesystem::path(YOKE_SOURCE_DIR) / "tests/golden/llama-f32";
  Engine engine({.model = folder}, 2);
  engine.ask({.id = 1, .prompt = {1, 2, 3}, .answer_max = 3});
  EXPECT_TRUE(traces_of(engine).empty());
}

}  // namespace
}  // namespace yoke::engine
