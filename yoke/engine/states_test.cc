// States of the last layer, against logits that transformers computed: the head's weights times a state are the logits.
#include <gtest/gtest.h>

#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/engine/engine_threads_testing.h"
#include "yoke/engine/golden.h"
#include "yoke/weights/safetensors_file.h"

namespace yoke::engine {
namespace {

namespace fs = std::filesystem;

struct StatesCase {
  const char* model;
  const char* head;
  int ranks;  // 3 are stages
};

class StatesOnRanks : public testing::TestWithParam<StatesCase> {};
INSTANTIATE_TEST_SUITE_P(Layouts, StatesOnRanks,
                         testing::Values(StatesCase{"llama-f32", "lm_head.weight", 1},
                                         StatesCase{"llama-f32", "lm_head.weight", 2},
                                         StatesCase{"llama-f32", "lm_head.weight", 3}));

TEST_P(StatesOnRanks, TimesTheHeadAreTheGoldenLogits) {
  const fs::path folder = fs::path(YOKE_SOURCE_DIR) / "tests/golden" / GetParam().model;
  const weights::SafetensorsFile weights_file(folder / "model.safetensors");
  const tensor::Tensor head = weights_file.view(*weights_file.find(GetParam().head));  // [V, C]
  const std::vector<GoldenCase> cases = load_golden(folder);
  Engine engine({.model = folder, .chunk_tokens = 4}, GetParam().ranks);
  std::uint64_t id = 0;
  for (const GoldenCase& one : cases) {
    if (!one.logits || one.logits->extent(0) != std::ssize(one.ids)) continue;
    for (const LogitsWanted wanted : {LogitsWanted::kStates, LogitsWanted::kLastState}) {
      Request request{.id = ++id, .prompt = one.ids, .answer_max = 0};
      request.logits = wanted;
      engine.connection().submit(request);
      double error = 0, largest = 0;
      std::int64_t rows = 0;
      engine.wait_for(1, [&](const EngineEvent& event) {
        const auto* const states = std::get_if<LogitsEvent>(&event);
        if (states == nullptr) return;
        rows += states->rows.extent(0);
        for (std::int64_t row = 0; row < states->rows.extent(0); ++row) {
          for (std::int64_t v = 0; v < head.extent(0); ++v) {
            double logit = 0;
            for (std::int64_t c = 0; c < head.extent(1); ++c) {
              logit += double{head.row<float>(v)[c]} * double{states->rows.row<float>(row)[c]};
            }
            const double golden = one.logits->row<float>(states->position + row)[v];
            largest = std::max(largest, std::abs(golden));
            error = std::max(error, std::abs(golden - logit));
          }
        }
      });
      EXPECT_EQ(rows, wanted == LogitsWanted::kStates ? std::ssize(one.ids) : 1) << one.name;
      EXPECT_LT(error / largest, 1e-4) << one.name;
    }
  }
  EXPECT_GE(id, 2U);
}

}  // namespace
}  // namespace yoke::engine
