// Carries out plans on one rank: the table of sequences, the model's steps, and the gathering of what rank 0 needs to
// choose tokens. All ranks run the same plans on the same tables. One thread owns it.
//
// With S stages, S plans are under way. At each run() all ranks get the newest; stage s computes its layers of the plan
// that came s runs before, hands the activations to the next stage, and the last stage's candidates go to rank 0. So
// all stages compute at once, each another plan, and each carries out all plans in the same order.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "yoke/engine/page_book.h"
#include "yoke/engine/plan.h"
#include "yoke/models/language_model.h"
#include "yoke/text/grammar_cache.h"

namespace yoke::engine {

// What came of one row of a plan, on rank 0.
struct RowResult {
  std::int32_t slot = 0;
  std::optional<text::SampledToken> made;  // the next token, where all tokens of the sequence are in the cache now
  std::optional<LogitsEvent> logits;       // those that were asked for
  std::optional<Error> error;              // of this sequence alone
};

struct ExecutorOptions {
  std::int64_t pages = 0;
  tensor::DType cache_type = tensor::DType::kF32;
  models::StepLimits limits;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;  // of the model
  int stages = 1;
  std::filesystem::path tokenizer = {};  // the file, for grammars of answers
};

class Executor {
 public:
  // `arena` is what the model's outline says for these limits.
  Executor(models::LanguageModel& model, ops::Backend& ops, const ExecutorOptions& options, std::size_t arena_bytes);

  // Forgets all sequences, and goes on in the rebuilt group.
  void restart(const models::Mesh& mesh, comm::Communicator& control);
  // Rank 0 gets a result for each row of the plan that came stages - 1 runs before this one, the others none.
  std::vector<RowResult> run(StepPlan plan);

 private:
  struct Sequence {
    Request request;  // whose answer grows with the plans
    std::vector<std::int32_t> pages;
    std::int64_t cached = 0;                        // tokens in the cache
    std::unique_ptr<text::GrammarMatcher> matcher;  // where the answer has a grammar and this rank sees logits
    std::optional<Error> error;                     // of its grammar

    std::int64_t length() const { return std::ssize(request.prompt) + std::ssize(request.answer); }
    text::TokenId token(std::int64_t index) const;
  };
  // Which rows of a step's logits belong to whom.
  struct RowUse {
    std::shared_ptr<const Sequence> sequence;  // which may have ended meanwhile
    std::int32_t slot = 0;
    std::int64_t length = 0;     // of the sequence
    std::int64_t position = 0;   // of the first logit row that was asked for
    std::int64_t first = 0;      // among the logit rows
    std::int64_t wanted = 0;     // rows that the request asked for
    std::int64_t state_row = 0;  // the first row of the step whose state it asked for,
    std::int64_t states = 0;     // and how many
    std::int64_t last = 0;       // the logit row of the next token
    bool samples = false;        // where there is one
  };

  struct PlanUnderWay {
    StepPlan plan;
    std::vector<RowUse> uses;  // when this rank has begun it
    std::int64_t tokens() const;
  };

  const std::shared_ptr<Sequence>& sequence_at(std::int32_t slot);
  void forget(std::int32_t slot);
  void admit(const Admission& admission);
  void open_slot(std::int32_t slot, const Sequence& sequence, std::span<const std::uint32_t> allowed);
  void begin_grammar(Sequence& sequence);
  void follow_grammar(Sequence& sequence, text::TokenId made) const;
  void allow_next(const RowUse& use);
  void follow(const StepPlan& plan);
  RowUse add_row(const PlanRow& row);
  const PlanUnderWay* under_way(int stage) const;  // the plan that a stage is at; null while it waits for the first
  ops::Slab compute(PlanUnderWay& own);
  void hand_over();
  ops::Slab activations(std::size_t which, std::int64_t tokens) const;
  void wait_for_step();
  std::vector<std::int32_t> select_rows(const std::vector<RowUse>& uses, const ops::Slab& logits, std::size_t words);
  std::vector<RowResult> sample_rows(const std::vector<RowUse>& uses, const ops::Slab& logits);
  text::SampledToken sample_row(const RowUse& use, std::size_t index, std::size_t words, std::size_t rows,
                                const std::vector<std::int32_t>& all) const;
  void gather_states(const std::vector<RowUse>& uses, std::vector<RowResult>& results);
  void gather_logits(const std::vector<RowUse>& uses, const ops::Slab& logits, std::vector<RowResult>& results);

  models::LanguageModel& model_;
  ops::Backend& ops_;
  ExecutorOptions options_;
  models::KvCache cache_;
  ops::StepArena arena_;
  std::vector<std::unique_ptr<ops::SlabMemory>> activations_;  // two where they come from one stage and go to another
  std::size_t now_ = 0;                                        // which of them the step at hand uses
  std::unique_ptr<ops::SlabMemory> blocks_;                    // of the candidates of a step
  std::vector<std::shared_ptr<Sequence>> sequences_;           // by slot
  std::deque<PlanUnderWay> under_way_;                         // the newest first
  ops::StepRows rows_;                                         // of the step at hand
  std::vector<std::int32_t> ids_;                              // of a row at hand
  text::GrammarCache grammars_;
  models::Mesh mesh_;
  comm::Communicator* control_ = nullptr;
  int logit_ranks_ = 1;  // ranks that have logits: those of the last stage,
  int logit_first_ = 0;  // from this one on
};

}  // namespace yoke::engine
