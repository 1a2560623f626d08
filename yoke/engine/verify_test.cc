#include "yoke/engine/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke::engine {
namespace {

tensor::Tensor rows_of(std::vector<float> values, std::int64_t rows) {
  const std::int64_t width = std::ssize(values) / rows;
  return tensor::Tensor::borrow(std::span(values), {rows, width}).copied();
}

// The last two of three tokens have golden logits.
GoldenCase with_logits() {
  GoldenCase one{.name = "case 0", .prompt = {}, .messages = {}, .ids = {5, 6, 7}, .greedy = {}, .logits = {}};
  one.logits = rows_of({1, -4, 2, 0}, 2);
  return one;
}

TEST(LogitsCheck, IsTheLargestDifferenceOverTheLargestGoldenLogit) {
  const GoldenCase one = with_logits();
  LogitsCheck check(one);
  check.take({1, 0, rows_of({9, 9, 1, -4}, 2)});  // position 0 is not golden
  check.take({1, 2, rows_of({2, 0.5F}, 1)});
  EXPECT_EQ(check.relative_error(), 0.5 / 4);
}

TEST(LogitsCheck, MissingRowsAreAnInfiniteError) {
  const GoldenCase one = with_logits();
  LogitsCheck check(one);
  check.take({1, 1, rows_of({1, -4}, 1)});
  EXPECT_EQ(check.relative_error(), std::numeric_limits<double>::infinity());
}

TEST(LogitsCheck, ANumberThatIsNoneStays) {
  const GoldenCase one = with_logits();
  LogitsCheck check(one);
  check.take({1, 1, rows_of({std::nanf(""), -4, 2, 0}, 2)});
  EXPECT_TRUE(std::isnan(*check.relative_error()));
  Verified result;
  result.relative_error = check.relative_error();
  EXPECT_FALSE(result.agrees(1));
}

TEST(LogitsCheck, RefusesAnotherVocabulary) {
  const GoldenCase one = with_logits();
  LogitsCheck check(one);
  const LogitsEvent wider{1, 0, rows_of({1, 2, 3}, 1)};
  EXPECT_ERROR(check.take(wider), ErrorCode::kInvalid, "the model has 3 logits for a token, its golden.safetensors 2");
}

TEST(Verified, AgreesUpToTheFirstTokenThatDiffers) {
  Verified result;
  result.expected = {1, 2, 3};
  result.greedy = {1, 2, 4};
  EXPECT_EQ(result.agreeing(), 2U);
  EXPECT_FALSE(result.agrees(1));
  result.greedy = {1, 2, 3};
  EXPECT_TRUE(result.agrees(0));
  result.same_ids = false;
  EXPECT_FALSE(result.agrees(0));
}

TEST(Verdict, IsTheWorstOfAllCases) {
  Verified good, bad, silent;
  good.expected = good.greedy = {1, 2, 3};
  good.relative_error = 1e-6;
  bad.expected = {4};
  bad.greedy = {5};
  bad.relative_error = 2e-3;
  const VerifyVerdict verdict = evaluate({good, bad, silent}, 1e-4);
  EXPECT_EQ(verdict.max_relative_error, 2e-3);
  EXPECT_EQ(verdict.greedy_agreement, 0.75);
  EXPECT_FALSE(verdict.agrees);
  EXPECT_TRUE(evaluate({good}, 1e-4).agrees);
  EXPECT_FALSE(evaluate({silent}, 1e-4).max_relative_error);
  EXPECT_FALSE(evaluate({silent}, 1e-4).greedy_agreement);
}

std::vector<GoldenCase> read_golden(const std::string& text) {
  const ScratchDir folder;
  write_file_atomically(folder.path() / "golden.json", text);
  return load_golden(folder.path());
}

TEST(Golden, IsReadWithItsLogits) {
  const std::vector<GoldenCase> cases = load_golden(std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano");
  ASSERT_FALSE(cases.empty());
  EXPECT_EQ(cases.front().name, "case 0");
  EXPECT_FALSE(cases.front().ids.empty());
  ASSERT_TRUE(cases.front().logits);
  EXPECT_LE(cases.front().logits->extent(0), std::ssize(cases.front().ids));
}

TEST(Golden, ReportsWhatIsMissing) {
  EXPECT_ERROR(read_golden("{}"), ErrorCode::kInvalid, "/golden.json has no cases");
  EXPECT_ERROR(read_golden(R"({"cases": [{}]})"), ErrorCode::kInvalid, "the key 'ids' is missing");
  EXPECT_ERROR(read_golden(R"({"cases": [{"ids": [1]}]})"), ErrorCode::kInvalid, "there is nothing to compare with");
  const ScratchDir empty;
  EXPECT_ERROR(load_golden(empty.path()), ErrorCode::kNotFound, "there is no golden.json in ");
}

}  // namespace
}  // namespace yoke::engine
