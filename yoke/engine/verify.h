// The engine against what another implementation computed from the same model (golden.h): the difference of logits, the
// tokens that follow, and the verdict over all cases. Pure.
//
//   LogitsCheck check(one);
//   check.take(rows);                       // as they come
//   result.relative_error = check.relative_error();
//   const VerifyVerdict verdict = evaluate(results, kVerifyTolerance);
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/engine/golden.h"
#include "yoke/engine/request.h"
#include "yoke/tensor/tensor.h"

namespace yoke::engine {

inline constexpr double kVerifyTolerance =
    1e-4;  // relative to the largest logit: what f32 sums in another order differ by

// One case, compared.
struct Verified {
  std::string name;
  std::size_t prompt_tokens = 0;
  std::optional<double> relative_error;         // nothing where there are no logits to compare with
  std::vector<text::TokenId> expected, greedy;  // what should follow, and what did
  std::optional<bool> same_ids;                 // tokenizer and template give the prompt's ids; nothing where not asked
  std::string ids_note;                         // why they could not be asked
  std::optional<Error> error;                   // what came instead of an answer

  std::size_t agreeing() const;  // tokens, up to the first that differs
  bool is_compared() const { return error || relative_error || !expected.empty() || same_ids; }
  bool agrees(double tolerance) const;
};

// The largest difference, over the largest golden logit. The case must live as long.
class LogitsCheck {
 public:
  explicit LogitsCheck(const GoldenCase& one);

  // Rows of the prompt's logits, in any pieces. Throws Error(kInvalid) where they are of another vocabulary.
  void take(const LogitsEvent& made);
  // Nothing where the case has no logits; infinite where rows are missing.
  std::optional<double> relative_error() const;

 private:
  void compare(const float* ours, const float* golden, std::int64_t count);

  const std::optional<tensor::Tensor>& golden_;
  std::int64_t first_;
  std::int64_t rows_ = 0;
  double largest_ = 0;
  double error_ = 0;
};

struct VerifyVerdict {
  std::vector<Verified> cases;
  double tolerance = kVerifyTolerance;
  std::optional<double> max_relative_error;  // nothing where no case has logits
  std::optional<double> greedy_agreement;    // of all tokens, up to the first of each case that differs
  bool agrees = true;
};

VerifyVerdict evaluate(std::vector<Verified> cases, double tolerance);

}  // namespace yoke::engine
