// The planner against published measurements (tests/data/measured.csv).
#include "yoke/plan/validate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/plan/words.h"

namespace yoke::plan {
namespace {

const std::string kMeasuredFile = std::string(YOKE_SOURCE_DIR) + "/tests/data/measured.csv";

std::vector<MeasuredRow> published_rows() { return parse_measured(read_file(kMeasuredFile), kMeasuredFile); }

TEST(Validate, ModelsThatWereLeftOutArePredictedWithinTheGoal) {
  const Validation validation = validate(published_rows());
  const ErrorSummary& all = validation.held_out.at("all");
  EXPECT_GE(all.rows, 160);
  EXPECT_LE(all.median, 0.20);
  EXPECT_LE(all.p90, 0.65);
  EXPECT_GE(all.within_interval, 0.80) << "the 80% interval is one";
  for (const auto& [name, summary] : validation.held_out) {
    std::printf("%-12s %3d rows  leave one model out %5.1f%% / %5.1f%%  in-sample %5.1f%% / %5.1f%%\n", name.c_str(),
                summary.rows, 100 * summary.median, 100 * summary.p90, 100 * validation.in_sample.at(name).median,
                100 * validation.in_sample.at(name).p90);
  }
}

TEST(Validate, ShippedConstantsReachTheGoalInEveryClass) {
  const Validation validation = validate(published_rows());
  EXPECT_LE(validation.in_sample.at("all").median, 0.15);
  EXPECT_LE(validation.in_sample.at("all").p90, 0.40);
  for (const auto& [name, summary] : validation.in_sample) {
    const bool is_aggregate = name == "aggregate";
    EXPECT_LE(summary.median, is_aggregate ? 0.30 : 0.20) << name;
    EXPECT_LE(summary.p90, is_aggregate ? 0.60 : 0.40) << name;
  }
}

TEST(Validate, EveryTrustedRowIsReportedAndNoOther) {
  const std::vector<MeasuredRow> rows = published_rows();
  const Validation validation = validate(rows);
  int trusted = 0;
  for (const MeasuredRow& row : rows) trusted += row.confidence == "A" || row.confidence == "B" ? 1 : 0;
  EXPECT_EQ(std::ssize(validation.rows), trusted);
  EXPECT_EQ(validation.left_out, std::ssize(rows) - trusted);
  for (const RowResult& result : validation.rows) {
    EXPECT_TRUE(result.predicted || !result.why.empty()) << result.row.id;
    EXPECT_NE(result.class_name, "other") << result.row.id;
  }
}

// Rows and models behind each constant, in the order of constant_table().
struct Support {
  int rows = 0;
  std::set<std::string> models;
};
std::vector<Support> count_support(const std::vector<MeasuredRow>& rows) {
  std::vector<Support> support(kConstantCount);
  const Constants shipped = shipped_constants();
  for (const MeasuredRow& row : rows) {
    if (row.confidence != "A" && row.confidence != "B") continue;
    const Question question = question_of(row);
    if (!question.answer) continue;
    shipped.forget_used();
    question.answer(shipped);
    const ConstantSet used = shipped.used();
    for (std::size_t id = 0; id < kConstantCount; ++id) {
      if (!used.test(id)) continue;
      ++support[id].rows;
      support[id].models.insert(row.model.empty() ? row.source : row.model.substr(0, row.model.find(" (")));
    }
  }
  return support;
}

TEST(Constants, StateTheRowsThatTheyRestOnAndMarkTheWeak) {
  const std::vector<Support> support = count_support(published_rows());
  for (const ConstantRow& row : constant_table()) {
    const Support& counted = support[static_cast<std::size_t>(row.id)];
    EXPECT_EQ(row.rows, counted.rows) << row.name;
    EXPECT_EQ(row.models, std::ssize(counted.models)) << row.name;
    EXPECT_EQ(&row, &row_of(row.id));
    if (row.rows < 3) {
      EXPECT_FALSE(row.rests.empty()) << row.name << " rests on " << row.rows << " rows without a mark";
    }
  }
  EXPECT_EQ(row_of(Constant::kRoutingSkew).value, 0.85) << "not what the shown rows fit";
}

TEST(Validate, AHeldOutModelDoesNotTouchItsOwnPrediction) {
  // Doubling the measured values of one model must not move what is predicted of it when it is left out.
  std::vector<MeasuredRow> rows = published_rows();
  const Validation before = validate(rows);
  for (MeasuredRow& row : rows) {
    if (row.model == "qwen2.5-7b") row.value *= 2;
  }
  const Validation after = validate(rows);
  int compared = 0;
  for (std::size_t i = 0; i < before.rows.size(); ++i) {
    if (before.rows[i].row.model != "qwen2.5-7b") continue;
    EXPECT_EQ(before.rows[i].held_out, after.rows[i].held_out) << before.rows[i].row.id;
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

constexpr const char* kHeader =
    "id,kind,hardware,n_gpus,model,quant,engine,parallelism,batch,ctx_or_isl,osl_or_gen,metric,value,unit,source,"
    "confidence,note\n";

TEST(Measured, FilesThatMakeNoSenseAreRefusedWithTheLine) {
  const auto refused = [](const std::string& csv) {
    try {
      parse_measured(csv, "m.csv");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("taken");
  };
  EXPECT_NE(refused("").find("no header"), std::string::npos);
  EXPECT_NE(refused("id,kind\n").find("'hardware' is missing"), std::string::npos);
  const std::string row = "a,serve,GB10,1,llama-3.1-8b,FP8,vLLM,TP1,1,512,128,decode,";
  EXPECT_NE(refused(kHeader + row + "0,tok/s,x,A,\n").find("m.csv:2"), std::string::npos);
  EXPECT_NE(refused(kHeader + row + "-3,tok/s,x,A,\n").find("above zero"), std::string::npos);
  EXPECT_NE(refused(kHeader + row + ",tok/s,x,A,\n").find("above zero"), std::string::npos);
  EXPECT_NE(refused(kHeader + row + "nan,tok/s,x,A,\n").find("above zero"), std::string::npos);
  EXPECT_NE(refused(std::string(kHeader) + "\"a,serve\n").find("quote"), std::string::npos);
  EXPECT_EQ(refused(kHeader + row + "20,tok/s,\"a \"\"b\"\", c\",A,\r\n\n"), "taken");
}

TEST(Measured, AnUnknownModelOrMachineIsDeclinedWithAReason) {
  const std::string rest = ",FP8,vLLM,TP1,1,512,128,decode,20,tok/s,x,A,\n";
  const Validation validation = validate(parse_measured(
      std::string(kHeader) + "a,serve,GB10,1,mystery" + rest + "b,serve,abacus,1,llama-3.1-8b" + rest, "m.csv"));
  ASSERT_EQ(validation.rows.size(), 2U);
  EXPECT_FALSE(validation.rows[0].predicted);
  EXPECT_NE(validation.rows[0].why.find("model"), std::string::npos);
  EXPECT_NE(validation.rows[1].why.find("hardware"), std::string::npos);
  const Document json = to_json(validation);
  EXPECT_EQ(json.find("rows")->items[0].find("predicted")->kind, Document::Kind::kNull);
}

TEST(Measured, ImagesWithoutACompilerTakeAsLongAsTheirLaunches) {
  const auto seconds_of = [](const std::string& engine, int gpus) {
    const std::string row = fmt::format(
        "a,image,H100,{},flux.1-dev,bf16,{},Ulysses-{},1,1024x1024,28 steps,latency,4,s,x,A,\n", gpus, engine, gpus);
    return validate(parse_measured(kHeader + row, "m.csv")).rows.at(0).predicted.value();
  };
  EXPECT_LT(seconds_of("eager", 2), 0.8 * seconds_of("eager", 1));
  EXPECT_EQ(seconds_of("eager", 8), seconds_of("eager", 4)) << "one thread launches the kernels of each GPU";
  EXPECT_LT(seconds_of("torch.compile", 4), 0.6 * seconds_of("eager", 4));
  EXPECT_LT(seconds_of("torch.compile", 8), seconds_of("torch.compile", 4));
}

// Korthikanti et al., figure 1: activations of one GPU in GiB.
TEST(Measured, ActivationsOfThePapersLargestModelsAreThePapers) {
  std::string csv = kHeader;
  for (const char* row :
       {"turing-530b,114.02,none", "turing-530b,23.08,seqsel", "megatron-1t,131.25,none", "megatron-1t,26.56,seqsel"}) {
    const std::vector<std::string> parts = split(row, ',');
    csv += fmt::format("a,memory,A100,8,{},fp16,Megatron,TP8 (paper config),1,2048,,activation_memory,{},GiB,x,A,{}\n",
                       parts[0], parts[1], parts[2]);
  }
  for (const RowResult& result : validate(parse_measured(csv, "m.csv")).rows) {
    EXPECT_NEAR(result.predicted.value() / result.row.value, 1, 0.001) << result.row.model << " " << result.row.note;
  }
}

TEST(Measured, ExpertsOverAllGpusHaveTheMemoryOfAllGpus) {
  const auto rate_of = [](const std::string& parallelism) {
    const std::string row = "a,serve,B200,4,deepseek-v3,FP4,TRT-LLM," + parallelism +
                            ",max,1024,1024,output_throughput_per_gpu,6430,tok/s/GPU,x,A,\n";
    return validate(parse_measured(kHeader + row, "m.csv")).rows.at(0).predicted.value();
  };
  EXPECT_EQ(rate_of("DEP4"), rate_of("TP4"));
  EXPECT_GT(rate_of("DEP4"), 1000);
}

TEST(Words, CountsAndSizesAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_count("4096", "--context"), 4096);
  EXPECT_EQ(parse_count("128k", "--context"), 131072);
  EXPECT_EQ(parse_count("1T", "--tokens"), 1e12);
  EXPECT_EQ(parse_image_size("1024").second, 1024);
  EXPECT_EQ(parse_image_size("512x768").second, 768);
  for (const char* wrong : {"", "0", "-1", "k", "1e99", "12q", "0.1", "nan"}) {
    EXPECT_ERROR(parse_count(wrong, "--context"), ErrorCode::kUsage, "--context cannot be") << wrong;
  }
  for (const char* wrong : {"", "0x0", "1000", "1024x", "x1024", "1024x1024x3", "99999"}) {
    EXPECT_ERROR(parse_image_size(wrong), ErrorCode::kUsage, "--size cannot be") << wrong;
  }
}

}  // namespace
}  // namespace yoke::plan
