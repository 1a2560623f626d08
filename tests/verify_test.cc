// The engine against what transformers computed, over ranks of every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine_fixture.h"
#include "yoke/base/fields.h"

namespace yoke {
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
  const Document told = yoke_json(
      {"verify", model, "--ranks", fmt::format("{}", golden.ranks), "--transport", golden.transport, "--threads", "1"});
  EXPECT_LT(from_document<double>(*told.find("max_relative_error")), 1e-4);
  EXPECT_GT(from_document<double>(*told.find("max_relative_error")), 0) << "something was compared";
  EXPECT_EQ(from_document<double>(*told.find("greedy_agreement")), 1);
  EXPECT_EQ(from_document<int>(*told.find("ranks")), golden.ranks);
  EXPECT_EQ(told.find("cases")->items.size(), golden.model == std::string("nano") ? 11U : 5U);
  for (const Document& one : told.find("cases")->items) EXPECT_EQ(one.find("agrees")->text, "true");
  EXPECT_EQ(told.find("cases")->items[0].find("prompt_ids_agree")->text, "true");
}
INSTANTIATE_TEST_SUITE_P(
    Goldens, Verify,
    testing::Values(Golden{"llama-f32", 1, "auto"}, Golden{"llama-f32", 2, "direct"}, Golden{"llama-f32", 4, "direct"},
                    Golden{"llama-f32", 4, "threads"}, Golden{"llama-bf16-tied", 2, "direct"},
                    Golden{"llama-bf16-tied", 4, "threads"}, Golden{"llama-w4a16", 2, "direct"},
                    Golden{"llama-fp8", 2, "direct"}, Golden{"llama-nvfp4", 2, "threads"}, Golden{"nano", 2, "direct"}),
    [](const auto& test) {
      std::string name = fmt::format("{}_{}_{}", test.param.model, test.param.ranks, test.param.transport);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

struct VerifyCommand : EngineTest {
  void copy_model() const { fs::copy(kGolden + "llama-f32", scratch.path() / "model"); }
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
  const Outcome outcome = yoke({"verify", kGolden + "llama-w4a16", "--ranks", "4"});
  EXPECT_EQ(outcome.exit_status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ranks"));
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
}  // namespace yoke
