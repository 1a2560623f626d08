// The engine against what transformers computed, over ranks of every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/engine_fixture.h"
#include "yoke/base/fields.h"
#include "yoke/weights/safetensors_file.h"
#include "yoke/weights/writer.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Golden {
  const char* model;
  int ranks;
  const char* transport;
};
class Verify : public EngineTest, public testing::WithParamInterface<Golden> {};
TEST_P(Verify, LogitsTokensAndIdsAreThoseOfTransformers) {
  const Golden& golden = GetParam();
  const std::string model = golden.model == std::string("nano") ? kNano : kGolden + golden.model;
  const Document reported = yoke_json(
      {"verify", model, "--ranks", fmt::format("{}", golden.ranks), "--transport", golden.transport, "--threads", "1"});
  EXPECT_LT(from_json<double>(*reported.find("max_relative_error")), 1e-4);
  EXPECT_GT(from_json<double>(*reported.find("max_relative_error")), 0) << "something was compared";
  EXPECT_EQ(from_json<double>(*reported.find("greedy_agreement")), 1);
  EXPECT_EQ(from_json<int>(*reported.find("ranks")), golden.ranks);
  EXPECT_EQ(reported.find("cases")->items.size(), golden.model == std::string("nano") ? 11U : 5U);
  for (const Document& one : reported.find("cases")->items) EXPECT_EQ(one.find("agrees")->text, "true");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(reported.find("cases")->items[i].find("prompt_ids_agree")->text, "true");
}

std::string golden_name(const testing::TestParamInfo<Golden>& test) {
  std::string name = fmt::format("{}_{}_{}", test.param.model, test.param.ranks, test.param.transport);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Every folder of tests/golden with a model on one rank, two and four.
std::vector<Golden> all_goldens() {
  std::vector<Golden> all;
  for (const char* model : {"llama-f32", "llama-bf16-tied", "llama-biased-f16", "llama-fp8", "llama-gptq",
                            "llama-nvfp4", "llama-w4a16", "llama-w4a16-ordered", "mistral-window-bf16",
                            "qwen2-w4a16-channel", "qwen2-window-f32", "qwen3-bf16", "qwen3moe-a", "qwen3moe-b"}) {
    for (const int ranks : {1, 2, 4}) {
      all.push_back({model, ranks, ranks == 1 ? "auto" : "threads"});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Goldens, Verify, testing::ValuesIn(all_goldens()), golden_name);
INSTANTIATE_TEST_SUITE_P(Processes, Verify,
                         testing::Values(Golden{"llama-f32", 2, "direct"}, Golden{"llama-f32", 4, "direct"},
                                         Golden{"llama-fp8", 2, "direct"}, Golden{"qwen3-bf16", 2, "direct"},
                                         Golden{"qwen3moe-a", 2, "direct"}, Golden{"qwen3-bf16", 3, "direct"},
                                         Golden{"nano", 2, "direct"}),
                         golden_name);

TEST(Goldens, NoFolderIsLeftOut) {
  std::set<std::string> listed;
  for (const Golden& golden : all_goldens()) listed.insert(golden.model);
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    EXPECT_TRUE(listed.contains(entry.path().filename())) << entry;
  }
}

struct VerifyCommand : EngineTest {
  void copy_model() const { fs::copy(kGolden + "llama-f32", scratch.path() / "model"); }
  void write(const char* name, std::string_view text) const {
    write_file_atomically(scratch.path() / "model" / name, text);
  }
};

TEST_F(VerifyCommand, RanksOfMpirunAgreeToo) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  for (const char* transport : {"auto", "direct"}) {
    const Outcome outcome = mpirun(2, {"verify", kGolden + "llama-f32", "--transport", transport, "--threads", "1"});
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("agrees: largest relative error"));
    EXPECT_THAT(outcome.out, HasSubstr("2 ranks"));
  }
}

TEST_F(VerifyCommand, AWrongTokenIsADisagreementWithStatusOne) {
  copy_model();
  const fs::path file = scratch.path() / "model/golden.json";
  Document golden = parse_json(read_file(file), "golden.json");
  for (auto& [key, cases] : golden.fields) {
    if (key != "cases") continue;
    for (auto& [name, value] : cases.items[1].fields) {
      if (name == "greedy") value.items[5].text = "1";
    }
  }
  write_file_atomically(file, print_json(golden));
  const Outcome outcome = yoke({"verify", "model"});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("5 of 24"));
  EXPECT_THAT(outcome.out, HasSubstr("DIFFERS"));
}

TEST_F(VerifyCommand, AStricterToleranceIsADisagreement) {
  const Outcome outcome = yoke({"verify", kGolden + "llama-f32", "--tolerance", "0"});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("24 of 24"));
}

TEST_F(VerifyCommand, GroupsOfQuantizedWeightsAreNotCut) {
  // Two ranks share each layer, and layers are cut into two stages.
  const Outcome outcome = yoke({"verify", kGolden + "llama-w4a16", "--ranks", "4"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(yoke({"verify", kGolden + "llama-w4a16", "--ranks", "3"}).err,
              HasSubstr("3 stages cannot share 2 layers"));
}

TEST_F(VerifyCommand, WhatWasNotComparedIsNotPraised) {
  copy_model();
  fs::remove(scratch.path() / "model/golden.safetensors");
  const Document tokens_only = yoke_json({"verify", "model"});
  EXPECT_EQ(tokens_only.find("max_relative_error")->kind, Document::Kind::kNull);
  EXPECT_EQ(tokens_only.find("greedy_agreement")->text, "1");
  EXPECT_THAT(yoke({"verify", "model"}).out, HasSubstr("agrees: no logits compared, 100.0% of greedy tokens"));
  write("golden.json", R"({"cases": [{"prompt": "Hello, world!", "ids": [763, 39]}]})");
  const Outcome nothing = yoke({"verify", "model"});
  EXPECT_EQ(nothing.exit_status, 4) << nothing.out;
  EXPECT_THAT(nothing.err, HasSubstr("there is nothing to compare with"));
}

TEST_F(VerifyCommand, LogitsOfACaseAreTakenByItsNumberFirst) {
  copy_model();
  // The first case, without the tokens that follow: its logits are still logits.0, of all its tokens.
  write("golden.json", R"({"cases": [{"ids": [763, 39, 68, 75, 333, 11, 318, 267, 540, 0]}, {"ids": [763]}]})");
  fs::remove(scratch.path() / "model/golden.safetensors");
  const std::string logits = (scratch.path() / "model/logits.safetensors").native();
  const char* const ids = "763,39,68,75,333,11,318,267,540,0";
  ASSERT_TRUE(yoke({"run", "model", "--ids", ids, "-n", "0", "--exact", "--logits", logits}).ok());
  const weights::SafetensorsFile made(logits);
  weights::SafetensorsWriter writer(scratch.path() / "model/golden.safetensors",
                                    {{"logits.0", tensor::DType::kF32, made.find("logits")->shape}});
  writer.append(std::as_bytes(made.view(*made.find("logits")).span<float>()));
  writer.finish();
  fs::remove(logits);
  const Document reported = yoke_json({"verify", "model"});
  EXPECT_EQ(reported.find("max_relative_error")->text, "0");
  EXPECT_EQ(reported.find("greedy_agreement")->kind, Document::Kind::kNull);
  EXPECT_FALSE(reported.find("cases")->items[1].find("relative_error"));
}

TEST_F(VerifyCommand, DamagedWeightsAreADisagreementToo) {
  copy_model();
  // The last bytes of the file as NaN in f32: some weight's.
  const fs::path file = scratch.path() / "model/model.safetensors";
  std::string bytes = read_file(file);
  for (std::size_t i = bytes.size() / 2; i + 4 <= bytes.size(); ++i) bytes[i] = '\xff';
  write_file_atomically(file, bytes);
  const Outcome outcome = yoke({"verify", "model"});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("case 0: the model gave logits that are not numbers"));
  EXPECT_THAT(outcome.out, HasSubstr("case 4"));
  EXPECT_THAT(outcome.out, HasSubstr("DIFFERS: "));
}

TEST_F(VerifyCommand, ACaseThatIsTooLongIsOneCase) {
  copy_model();
  const Outcome outcome = yoke({"verify", "model", "--context", "64"});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("24 of 24"));
  EXPECT_THAT(outcome.out, HasSubstr("case 4: "));
  const Outcome json = yoke({"verify", "model", "--context", "64", "--json"});
  const Document reported = parse_json(json.out, "out");
  EXPECT_EQ(reported.find("cases")->items[4].find("error")->find("code")->text, "invalid");
  EXPECT_EQ(reported.find("cases")->items[3].find("agrees")->text, "true");
}

TEST_F(VerifyCommand, ATokenizerThatWeCannotReadLeavesTheIdsUncompared) {
  copy_model();
  write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": []}})");
  const Outcome outcome = yoke({"verify", "model"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("prompt ids are not compared: "));
  EXPECT_THAT(outcome.out, HasSubstr("24 of 24  -           agrees"));
}

TEST_F(VerifyCommand, WhatIsNoGoldenIsSaid) {
  copy_model();
  for (const char* wrong : {"[]", "{}", R"({"cases": 5})", R"({"cases": [{}]})", R"({"cases": [{"ids": []}]})"}) {
    write_file_atomically(scratch.path() / "model/golden.json", wrong);
    EXPECT_EQ(yoke({"verify", "model"}).exit_status, 4) << wrong;
  }
  fs::remove(scratch.path() / "model/golden.json");
  const Outcome outcome = yoke({"verify", "model"});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("there is no golden.json"));
}

}  // namespace
}  // namespace yoke::tests
