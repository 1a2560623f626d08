// Carries out plans on one rank: the table of sequences, their pages, the model's steps, and the gathering of what rank
// 0 needs to choose tokens. All ranks run the same plans on the same tables. One thread owns it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "yoke/engine/page_pool.h"
#include "yoke/engine/plan.h"
#include "yoke/models/llama/llama.h"

namespace yoke {

inline constexpr std::int64_t kPageTokens = 16;

// What came of one row of a plan, on rank 0.
struct RowResult {
  std::uint64_t id = 0;
  std::optional<Sampled> made;       // the next token, where all tokens of the sequence are in the cache now
  std::optional<LogitsMade> logits;  // those that were asked for
  std::optional<Error> error;        // of this sequence alone
};

class Executor {
 public:
  struct Cache {
    std::int64_t pages = 0;
    DType type = DType::kF32;
  };
  Executor(Llama& model, Backend& ops, const Cache& cache);

  // Forgets all sequences, and goes on in the rebuilt group.
  void restart(Communicator& comm, Communicator& control);
  // Rank 0 gets a result for each row, the others none.
  std::vector<RowResult> run(const StepPlan& plan);

 private:
  struct Sequence {
    Request request;  // whose answer grows with the plans
    TokenCounts counts;
    std::vector<std::int32_t> pages;
    std::int64_t cached = 0;  // tokens in the cache

    std::int64_t length() const { return std::ssize(request.prompt) + std::ssize(request.answer); }
    TokenId token(std::int64_t index) const;
  };
  // Which rows of a step's logits belong to whom.
  struct RowUse {
    Sequence* sequence = nullptr;
    std::int64_t position = 0;  // of the first logit row that was asked for
    std::int64_t first = 0;     // among the logit rows
    std::int64_t wanted = 0;    // rows that the request asked for
    bool samples = false;       // the last row is for the next token
  };

  void follow(const StepPlan& plan);
  RowUse add_row(const PlanRow& row, LlamaBatch& batch);
  std::vector<RowResult> sample_rows(const std::vector<RowUse>& uses, const Tensor& logits);
  void gather_logits(const std::vector<RowUse>& uses, const Tensor& logits, std::vector<RowResult>& results);

  Llama& model_;
  Backend& ops_;
  KvCache cache_;
  std::int64_t pages_;
  PagePool pool_;
  std::map<std::uint64_t, Sequence> sequences_;
  Communicator* comm_ = nullptr;
  Communicator* control_ = nullptr;
};

// Pages that a sequence of so many tokens takes.
constexpr std::int64_t pages_for(std::int64_t tokens) { return ceil_divide(tokens, kPageTokens); }

}  // namespace yoke
