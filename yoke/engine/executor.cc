#include "yoke/engine/executor.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/check.h"
#include "yoke/engine/head_block.h"

namespace yoke::engine {
namespace {

constexpr std::size_t kMaxWords = ops::select_words(text::kMaxCandidates + 20);  // of one row

std::size_t count_samples(const auto& uses) {
  return static_cast<std::size_t>(std::count_if(uses.begin(), uses.end(), [](const auto& use) { return use.samples; }));
}

}  // namespace

Executor::Executor(models::LanguageModel& model, ops::Backend& ops, const ExecutorOptions& options,
                   std::size_t arena_bytes)
    : model_(model),
      ops_(ops),
      options_(options),
      cache_(model.allocate_cache({.pages = options.pages, .page_tokens = kPageTokens}, options.cache_type)),
      arena_(ops, arena_bytes),
      // A row that makes a token is of a sequence of its own, which has a token in the step.
      blocks_(ops.allocate({options.limits.tokens * static_cast<std::int64_t>(kMaxWords)}, tensor::DType::kI32)),
      grammars_(options.tokenizer) {
  for (int i = 0; i < (options.stages > 1 ? 2 : 1); ++i) {
    activations_.push_back(ops.allocate({options.limits.tokens, options.width}, tensor::DType::kF32));
  }
}

void Executor::restart(const models::Mesh& mesh, comm::Communicator& control) {
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot) {
    if (sequences_[slot]) forget(static_cast<std::int32_t>(slot));
  }
  YOKE_CHECK_EQ(mesh.stages, options_.stages);
  under_way_.clear();
  mesh_ = mesh;
  control_ = &control;
  logit_ranks_ = mesh.size;
  logit_first_ = (mesh.stages - 1) * mesh.size;
  model_.join(mesh.groups);
}

// ---- the table of sequences

text::TokenId Executor::Sequence::token(std::int64_t index) const {
  const std::int64_t in_answer = index - std::ssize(request.prompt);
  return in_answer < 0 ? request.prompt[static_cast<std::size_t>(index)]
                       : request.answer[static_cast<std::size_t>(in_answer)];
}

const std::shared_ptr<Executor::Sequence>& Executor::sequence_at(std::int32_t slot) {
  YOKE_CHECK(slot >= 0 && slot < std::ssize(sequences_) && sequences_[static_cast<std::size_t>(slot)] != nullptr,
             "slot {} of {} is empty", slot, sequences_.size());
  return sequences_[static_cast<std::size_t>(slot)];
}

void Executor::forget(std::int32_t slot) {
  sequence_at(slot);
  sequences_[static_cast<std::size_t>(slot)].reset();
  ops_.close_slot(slot);
}

void Executor::admit(const Admission& admission) {
  constexpr std::int32_t kMaxSlots = 1 << 20;
  YOKE_CHECK(admission.slot >= 0 && admission.slot < kMaxSlots, "slot {}", admission.slot);
  const auto slot = static_cast<std::size_t>(admission.slot);
  if (slot >= sequences_.size()) sequences_.resize(slot + 1);
  YOKE_CHECK(sequences_[slot] == nullptr, "slot {} is taken", slot);
  sequences_[slot] = std::make_shared<Sequence>();
  Sequence& sequence = *sequences_[slot];
  sequence.request = admission.request;
  sequence.cached = admission.cached;
  open_slot(admission.slot, sequence, {});
  if (mesh_.is_last() && !sequence.request.grammar.empty()) begin_grammar(sequence);
}

void Executor::open_slot(std::int32_t slot, const Sequence& sequence, std::span<const std::uint32_t> allowed) {
  const text::SamplingOptions& sampling = sequence.request.sampling;
  std::vector<ops::TokenBias> bias;
  for (const text::LogitBias& entry : sampling.logit_bias) bias.push_back({entry.id, entry.bias});
  ops_.open_slot(slot, {.repetition_penalty = sampling.repetition_penalty,
                        .frequency_penalty = sampling.frequency_penalty,
                        .presence_penalty = sampling.presence_penalty,
                        .bias = bias,
                        .allowed = allowed,
                        .prompt = sequence.request.prompt,
                        .answer = sequence.request.answer});
}

// ---- grammars

// Every rank that sees logits walks the grammar by itself: all know all tokens, and nothing needs to be sent. What goes
// wrong ends this sequence alone: it then finds no token that is allowed.
void Executor::begin_grammar(Sequence& sequence) {
  try {
    sequence.matcher = std::make_unique<text::GrammarMatcher>(grammars_.matcher(sequence.request.grammar));
    for (const text::TokenId id : sequence.request.answer) sequence.matcher->add(id);
  } catch (const Error& error) {
    sequence.error = error;
  }
}

void Executor::follow_grammar(Sequence& sequence, text::TokenId made) const {
  if (!sequence.matcher || sequence.error) return;
  try {
    sequence.matcher->add(made);
  } catch (const Error& error) {
    sequence.error = error;
  }
}

void Executor::allow_next(const RowUse& use) {
  const std::shared_ptr<Sequence>& sequence = sequence_at(use.slot);
  if (sequence->request.grammar.empty()) return;
  std::vector<std::uint32_t> allowed(1);  // nothing
  try {
    if (!sequence->error) allowed = sequence->matcher->allowed(sequence->request.stop_ids);
  } catch (const Error& error) {
    sequence->error = error;
  }
  if (allowed.empty()) allowed.resize(1);
  ops_.close_slot(use.slot);
  open_slot(use.slot, *sequence, allowed);
}

void Executor::follow(const StepPlan& plan) {
  for (const std::int32_t slot : plan.released) forget(slot);
  for (const Admission& admission : plan.admitted) admit(admission);
  for (const PageGrant& grant : plan.grants) {
    std::vector<std::int32_t>& pages = sequence_at(grant.slot)->pages;
    pages.insert(pages.end(), grant.pages.begin(), grant.pages.end());
  }
}

Executor::RowUse Executor::add_row(const PlanRow& row) {
  const std::shared_ptr<Sequence>& shared = sequence_at(row.slot);
  Sequence& sequence = *shared;
  if (row.made) {
    sequence.request.answer.push_back(*row.made);
    ops_.count_token(row.slot, *row.made);
    follow_grammar(sequence, *row.made);
  }
  const std::int64_t begin = sequence.cached;
  const std::int64_t end = begin + row.fresh;
  YOKE_CHECK(row.fresh > 0 && end <= sequence.length(), "{} to {} of {} tokens", begin, end, sequence.length());
  const std::int64_t prompt_length = std::ssize(sequence.request.prompt);
  const auto first_row = static_cast<std::int32_t>(rows_.ids.size());
  RowUse use{.sequence = shared,
             .slot = row.slot,
             .length = sequence.length(),
             .first = std::ssize(rows_.logit_rows),
             .samples = end == sequence.length()};
  ids_.clear();
  for (std::int64_t index = begin; index < end; ++index) {
    const bool asked = (sequence.request.logits == LogitsWanted::kAll && index < prompt_length) ||
                       (sequence.request.logits == LogitsWanted::kLast && index == prompt_length - 1);
    if (asked && use.wanted++ == 0) use.position = index;
    const bool asks_state = (sequence.request.logits == LogitsWanted::kStates && index < prompt_length) ||
                            (sequence.request.logits == LogitsWanted::kLastState && index == prompt_length - 1);
    if (asks_state && use.states++ == 0) {
      use.position = index;
      use.state_row = first_row + (index - begin);
    }
    if (asked || (use.samples && index == end - 1)) {
      rows_.logit_rows.push_back(first_row + static_cast<std::int32_t>(index - begin));
    }
    ids_.push_back(sequence.token(index));
  }
  use.last = std::ssize(rows_.logit_rows) - 1;
  rows_.add_sequence(begin, ids_, std::span(sequence.pages).first(static_cast<std::size_t>(pages_for(end))));
  sequence.cached = end;
  return use;
}

// ---- a step

std::int64_t Executor::PlanUnderWay::tokens() const {
  std::int64_t sum = 0;
  for (const PlanRow& row : plan.rows) sum += row.fresh;
  return sum;
}

const Executor::PlanUnderWay* Executor::under_way(int stage) const {
  const auto index = static_cast<std::size_t>(stage);
  return index < under_way_.size() ? &under_way_[index] : nullptr;
}

std::vector<RowResult> Executor::run(StepPlan plan) {
  if (std::ssize(under_way_) == mesh_.stages) under_way_.pop_back();
  under_way_.push_front({.plan = std::move(plan), .uses = {}});
  ops::Slab logits{0, {0, 0}, tensor::DType::kF32};
  const auto own = static_cast<std::size_t>(mesh_.stage);
  if (own < under_way_.size()) logits = compute(under_way_[own]);
  if (mesh_.stages > 1) hand_over();
  const PlanUnderWay* const last = under_way(mesh_.stages - 1);
  if (last == nullptr || last->plan.rows.empty()) return {};
  std::vector<RowResult> results = sample_rows(last->uses, logits);
  gather_logits(last->uses, logits, results);
  gather_states(last->uses, results);
  return results;
}

// This stage's layers of a plan.
ops::Slab Executor::compute(PlanUnderWay& own) {
  follow(own.plan);
  if (own.plan.rows.empty()) return {0, {0, 0}, tensor::DType::kF32};
  rows_.clear();
  for (const PlanRow& row : own.plan.rows) own.uses.push_back(add_row(row));
  return model_.forward(rows_.batch(), cache_, activations(now_, own.tokens()), arena_);
}

// From each stage to the next, all at once. Of two neighbours one sends first and the other receives first, so that
// they never wait for each other, however long it takes a message to be taken.
void Executor::hand_over() {
  const PlanUnderWay* const own = under_way(mesh_.stage);
  const PlanUnderWay* const before = mesh_.is_first() ? nullptr : under_way(mesh_.stage - 1);
  const std::int64_t leaving = own != nullptr && !mesh_.is_last() ? own->tokens() : 0;
  const std::int64_t coming = before != nullptr ? before->tokens() : 0;
  const auto send = [&] {
    if (leaving > 0) mesh_.send_on(ops_, activations(now_, leaving));
  };
  const bool sends_first = mesh_.stage % 2 == 0;
  if (sends_first) send();
  if (coming > 0) mesh_.take_over(ops_, activations(1 - now_, coming));
  if (!sends_first) send();
  now_ = 1 - now_;
}

ops::Slab Executor::activations(std::size_t which, std::int64_t tokens) const {
  return activations_[which]->slab().rows({0, tokens});
}

// Everything that was enqueued is done. The communicator's operations have limits of their own, which name the peer; a
// device that stands still is an error after the same time.
void Executor::wait_for_step() {
  constexpr Seconds kDeviceLimit{60};
  const tensor::Event event = ops_.record();
  const Deadline deadline = Deadline::after(kDeviceLimit);
  while (!ops_.passed(event)) {
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("the backend '{}' did not finish a step in {:.0f} s", ops_.name(), kDeviceLimit.value));
    }
  }
}

// This rank's candidates of the rows that need a token, as blocks of `words` each.
std::vector<std::int32_t> Executor::select_rows(const std::vector<RowUse>& uses, const ops::Slab& logits,
                                                std::size_t words) {
  std::vector<ops::SelectRow> rows;
  for (const RowUse& use : uses) {
    if (!use.samples) continue;
    if (mesh_.is_last()) allow_next(use);
    rows.push_back(select_row(use.sequence->request.sampling, static_cast<std::int32_t>(use.last), use.slot));
  }
  std::vector<std::int32_t> mine(rows.size() * words);
  if (!mesh_.is_last() || rows.empty()) return mine;
  ops::Slab blocks = blocks_->slab();
  blocks.shape = {std::ssize(rows), static_cast<std::int64_t>(words)};
  ops_.select(logits, static_cast<std::int32_t>(model_.vocabulary().begin), rows, blocks);
  ops_.download(blocks, std::as_writable_bytes(std::span(mine)));
  return mine;
}

text::SampledToken Executor::sample_row(const RowUse& use, std::size_t index, std::size_t words, std::size_t rows,
                                        const std::vector<std::int32_t>& all) const {
  std::vector<text::HeadSlice> slices;
  for (int rank = 0; rank < logit_ranks_; ++rank) {
    const std::size_t at = (static_cast<std::size_t>(logit_first_ + rank) * rows + index) * words;
    auto slice = read_head(std::span(all).subspan(at, words));
    if (!slice) {
      throw Error(ErrorCode::kInternal, "the model gave logits that are not numbers",
                  "the weights may be damaged: run 'yoke verify' on the model folder");
    }
    slices.push_back(std::move(*slice));
  }
  const Request& request = use.sequence->request;
  const std::size_t most = std::max(text::candidates_wanted(request.sampling),
                                    static_cast<std::size_t>(std::max(0, request.sampling.logprobs.value_or(0))));
  return text::sample(text::merge_slices(slices, most), request.sampling, static_cast<std::uint64_t>(use.length));
}

std::vector<RowResult> Executor::sample_rows(const std::vector<RowUse>& uses, const ops::Slab& logits) {
  std::size_t words = ops::kSelectHeaderWords;
  for (const RowUse& use : uses) {
    if (use.samples) words = std::max(words, head_words(use.sequence->request.sampling));
  }
  const std::vector<std::int32_t> mine = select_rows(uses, logits, words);
  wait_for_step();
  const std::size_t rows = count_samples(uses);
  const bool is_first = control_->rank() == 0;
  std::vector<std::int32_t> gathered(
      is_first && control_->size() > 1 ? mine.size() * static_cast<std::size_t>(control_->size()) : 0);
  if (control_->size() > 1 && rows > 0) {
    control_->enqueue({.kind = comm::CollectiveKind::kGather,
                       .send = mine.data(),
                       .receive = gathered.data(),
                       .count = mine.size(),
                       .type = tensor::DType::kI32},
                      tensor::Stream::cpu());
  }
  std::vector<RowResult> results;
  if (!is_first) return results;
  const std::vector<std::int32_t>& all = control_->size() > 1 ? gathered : mine;
  std::size_t index = 0;
  for (const RowUse& use : uses) {
    RowResult& result = results.emplace_back(RowResult{.slot = use.slot});
    if (!use.samples) continue;
    try {
      result.made = sample_row(use, index++, words, rows, all);
    } catch (const Error& error) {
      result.error = use.sequence->error ? *use.sequence->error : error;
    }
  }
  return results;
}

// All ranks of the last stage have the same states: the first of them gives them to rank 0, which is itself where there
// is one stage.
void Executor::gather_states(const std::vector<RowUse>& uses, std::vector<RowResult>& results) {
  const bool is_first = control_->rank() == 0;
  const bool has_states = control_->rank() == logit_first_;
  if (!is_first && !has_states) return;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const RowUse& use = uses[i];
    if (use.states == 0) continue;
    const tensor::Tensor rows = tensor::Tensor::empty({use.states, options_.width}, tensor::DType::kF32);
    if (has_states) {
      ops_.download(
          model_.states().rows({use.state_row, use.state_row + use.states}),
          std::as_writable_bytes(std::span(rows.mutable_row<float>(0), static_cast<std::size_t>(rows.count()))));
      wait_for_step();
    }
    if (logit_first_ != 0) {
      control_->enqueue({.kind = has_states ? comm::CollectiveKind::kSend : comm::CollectiveKind::kReceive,
                         .send = rows.raw(),
                         .receive = rows.mutable_raw(),
                         .count = static_cast<std::size_t>(rows.count()),
                         .type = tensor::DType::kF32,
                         .root = has_states ? 0 : logit_first_},
                        tensor::Stream::cpu());
    }
    if (is_first) {
      results[i].logits = LogitsEvent{.id = use.sequence->request.id, .position = use.position, .rows = rows};
    }
  }
}

// Every rank's columns of the rows that were asked for, put together on rank 0. Parts of a vocabulary may differ in
// size: all send as many columns as the widest part has.
void Executor::gather_logits(const std::vector<RowUse>& uses, const ops::Slab& logits,
                             std::vector<RowResult>& results) {
  const int ranks = control_->size();
  if (std::none_of(uses.begin(), uses.end(), [](const RowUse& use) { return use.wanted > 0; })) return;
  const std::int64_t width = model_.vocabulary().size();
  std::vector<std::int64_t> widths(static_cast<std::size_t>(ranks));
  comm::all_gather(*control_, &width, widths.data(), 2, tensor::DType::kI32);
  const std::int64_t widest = *std::max_element(widths.begin(), widths.end());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const RowUse& use = uses[i];
    if (use.wanted == 0) continue;
    tensor::Tensor mine = tensor::Tensor::zeros({use.wanted, widest}, tensor::DType::kF32);
    for (std::int64_t row = 0; row < use.wanted && width > 0; ++row) {
      ops_.download(logits.rows({use.first + row, use.first + row + 1}),
                    std::as_writable_bytes(std::span(mine.mutable_row<float>(row), static_cast<std::size_t>(width))));
    }
    wait_for_step();
    const bool is_first = control_->rank() == 0;
    const tensor::Tensor all = tensor::Tensor::empty({is_first ? ranks : 0, use.wanted, widest}, tensor::DType::kF32);
    control_->enqueue({.kind = comm::CollectiveKind::kGather,
                       .send = mine.raw(),
                       .receive = all.mutable_raw(),
                       .count = static_cast<std::size_t>(mine.count()),
                       .type = tensor::DType::kF32},
                      tensor::Stream::cpu());
    if (!is_first) continue;
    tensor::Tensor rows = tensor::Tensor::empty({use.wanted, options_.vocabulary}, tensor::DType::kF32);
    std::int64_t begin = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t count = widths[static_cast<std::size_t>(rank)];
      for (std::int64_t row = 0; row < use.wanted && count > 0; ++row) {
        std::memcpy(rows.mutable_row<float>(row) + begin, all.row<float>(rank) + row * widest,
                    static_cast<std::size_t>(count) * sizeof(float));
      }
      begin += count;
    }
    results[i].logits = LogitsEvent{.id = use.sequence->request.id, .position = use.position, .rows = rows};
  }
}

}  // namespace yoke::engine
