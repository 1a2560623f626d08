#include "yoke/engine/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace yoke::engine {

std::size_t Verified::agreeing() const {
  return static_cast<std::size_t>(std::mismatch(expected.begin(), expected.end(), greedy.begin(), greedy.end()).first -
                                  expected.begin());
}

bool Verified::agrees(double tolerance) const {
  // Also false for an error that is no number.
  const bool near = !relative_error || *relative_error <= tolerance;
  return !error && near && agreeing() == expected.size() && same_ids.value_or(true);
}

LogitsCheck::LogitsCheck(const GoldenCase& one)
    : golden_(one.logits), first_(std::ssize(one.ids) - (one.logits ? one.logits->extent(0) : 0)) {}

void LogitsCheck::take(const LogitsEvent& made) {
  if (!golden_) return;
  if (made.rows.extent(1) != golden_->extent(1)) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("the model has {} logits for a token, its golden.safetensors {}", made.rows.extent(1),
                            golden_->extent(1)),
                "are they of the same model?");
  }
  for (std::int64_t row = 0; row < made.rows.extent(0); ++row) {
    const std::int64_t at = made.position + row - first_;
    if (at < 0 || at >= golden_->extent(0)) continue;
    compare(made.rows.row<float>(row), golden_->row<float>(at), golden_->extent(1));
    ++rows_;
  }
}

std::optional<double> LogitsCheck::relative_error() const {
  if (!golden_) return std::nullopt;
  if (rows_ != golden_->extent(0)) return std::numeric_limits<double>::infinity();
  return largest_ > 0 ? error_ / largest_ : error_;
}

void LogitsCheck::compare(const float* ours, const float* golden, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = std::abs(static_cast<double>(ours[i]) - static_cast<double>(golden[i]));
    largest_ = std::max(largest_, std::abs(static_cast<double>(golden[i])));
    if (!std::isnan(error_) && !(difference <= error_)) error_ = difference;  // a NaN comes in, and stays
  }
}

VerifyVerdict evaluate(std::vector<Verified> cases, double tolerance) {
  VerifyVerdict verdict{
      .cases = std::move(cases), .tolerance = tolerance, .max_relative_error = {}, .greedy_agreement = {}};
  std::size_t expected = 0;
  std::size_t agreeing = 0;
  for (const Verified& one : verdict.cases) {
    if (one.relative_error) {
      const double largest = verdict.max_relative_error.value_or(0);
      const bool stays = std::isnan(largest) || *one.relative_error <= largest;
      verdict.max_relative_error = stays ? largest : *one.relative_error;
    }
    expected += one.expected.size();
    agreeing += one.agreeing();
    verdict.agrees = verdict.agrees && one.agrees(tolerance);
  }
  if (expected > 0) verdict.greedy_agreement = static_cast<double>(agreeing) / static_cast<double>(expected);
  return verdict;
}

}  // namespace yoke::engine
