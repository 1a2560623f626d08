#include "yoke/engine/executor.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/check.h"
#include "yoke/engine/head_block.h"

namespace yoke {

Executor::Executor(Llama& model, Backend& ops, const Cache& cache)
    : model_(model),
      ops_(ops),
      cache_(model.allocate_cache(cache.pages, kPageTokens, cache.type)),
      pages_(cache.pages),
      pool_(cache.pages) {}

void Executor::restart(Communicator& comm, Communicator& control) {
  sequences_.clear();
  pool_ = PagePool(pages_);
  comm_ = &comm;
  control_ = &control;
  model_.join(comm);
}

TokenId Executor::Sequence::token(std::int64_t index) const {
  const std::int64_t in_answer = index - std::ssize(request.prompt);
  return in_answer < 0 ? request.prompt[static_cast<std::size_t>(index)]
                       : request.answer[static_cast<std::size_t>(in_answer)];
}

void Executor::follow(const StepPlan& plan) {
  for (const std::uint64_t id : plan.released) {
    const auto found = sequences_.find(id);
    YOKE_CHECK(found != sequences_.end(), "sequence {} is released, but not there", id);
    pool_.give_back(found->second.pages);
    sequences_.erase(found);
  }
  for (const Request& request : plan.admitted) {
    const auto [place, is_new] = sequences_.try_emplace(request.id);
    YOKE_CHECK(is_new, "sequence {} is there already", request.id);
    Sequence& sequence = place->second;
    sequence.request = request;
    sequence.counts.add_prompt(request.prompt);
    for (const TokenId id : request.answer) sequence.counts.add_answer(id);
  }
}

Executor::RowUse Executor::add_row(const PlanRow& row, LlamaBatch& batch) {
  const auto found = sequences_.find(row.id);
  YOKE_CHECK(found != sequences_.end(), "sequence {} is planned, but not there", row.id);
  Sequence& sequence = found->second;
  if (row.made) {
    sequence.request.answer.push_back(*row.made);
    sequence.counts.add_answer(*row.made);
  }
  const std::int64_t begin = sequence.cached;
  const std::int64_t end = begin + row.fresh;
  YOKE_CHECK(row.fresh > 0 && end <= sequence.length(), "{} to {} of {} tokens", begin, end, sequence.length());
  pool_.take(pages_for(end) - std::ssize(sequence.pages), sequence.pages);
  batch.sequences.push_back({sequence.pages, begin, row.fresh});

  const std::int64_t prompt_length = std::ssize(sequence.request.prompt);
  RowUse use{.sequence = &sequence, .first = std::ssize(batch.logit_rows), .samples = end == sequence.length()};
  for (std::int64_t index = begin; index < end; ++index) {
    const bool asked = (sequence.request.logits == LogitsWanted::kAll && index < prompt_length) ||
                       (sequence.request.logits == LogitsWanted::kLast && index == prompt_length - 1);
    if (asked && use.wanted++ == 0) use.position = index;
    if (asked || (use.samples && index == end - 1)) batch.logit_rows.push_back(std::ssize(batch.ids));
    batch.ids.push_back(sequence.token(index));
    batch.positions.push_back(index);
  }
  sequence.cached = end;
  return use;
}

std::vector<RowResult> Executor::run(const StepPlan& plan) {
  follow(plan);
  if (plan.rows.empty()) return {};
  LlamaBatch batch;
  std::vector<RowUse> uses;
  for (const PlanRow& row : plan.rows) uses.push_back(add_row(row, batch));
  const Tensor logits = model_.forward(batch, cache_);
  ops_.wait();
  std::vector<RowResult> results = sample_rows(uses, logits);
  gather_logits(uses, logits, results);
  return results;
}

std::vector<RowResult> Executor::sample_rows(const std::vector<RowUse>& uses, const Tensor& logits) {
  std::vector<std::size_t> begins{0};
  for (const RowUse& use : uses) {
    begins.push_back(begins.back() + (use.samples ? head_words(use.sequence->request.sampling) : 0));
  }
  std::vector<std::int32_t> mine(begins.back());
  const auto block = [&](std::vector<std::int32_t>& words, std::size_t rank, std::size_t use) {
    return std::span(words).subspan(rank * mine.size() + begins[use], begins[use + 1] - begins[use]);
  };
  const Range tokens = model_.vocabulary();
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].samples) continue;
    const std::int64_t last = i + 1 < uses.size() ? uses[i + 1].first - 1 : logits.extent(0) - 1;
    const std::span row(logits.row<float>(last), static_cast<std::size_t>(tokens.size()));
    std::optional<HeadSlice> slice;
    try {
      slice = slice_head(row, static_cast<TokenId>(tokens.begin), uses[i].sequence->request.sampling,
                         uses[i].sequence->counts);
    } catch (const Error&) {
      slice.reset();  // logits that are no numbers: told to rank 0 by the slice's absence
    }
    write_head(slice, block(mine, 0, i));
  }
  const auto ranks = static_cast<std::size_t>(control_->size());
  std::vector<std::int32_t> all(control_->rank() == 0 ? mine.size() * ranks : 0);
  control_->enqueue({.kind = CollectiveKind::kGather,
                     .send = mine.data(),
                     .receive = all.data(),
                     .count = mine.size(),
                     .type = DType::kI32},
                    Stream::cpu());
  std::vector<RowResult> results;
  if (control_->rank() != 0) return results;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Sequence& sequence = *uses[i].sequence;
    RowResult& result = results.emplace_back(RowResult{.id = sequence.request.id});
    if (!uses[i].samples) continue;
    try {
      std::vector<HeadSlice> slices;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto slice = read_head(block(all, rank, i));
        if (!slice)
          throw Error(ErrorCode::kInternal, "the model gave logits that are not numbers",
                      "the weights may be damaged: run 'yoke verify' on the model folder");
        slices.push_back(std::move(*slice));
      }
      result.made =
          sample(merge_slices(slices), sequence.request.sampling, static_cast<std::uint64_t>(sequence.length()));
    } catch (const Error& error) {
      result.error = error;
    }
  }
  return results;
}

// Every rank's columns of the rows that were asked for, put together on rank 0. Parts of a vocabulary may differ in
// size: all send as many columns as the widest part has.
void Executor::gather_logits(const std::vector<RowUse>& uses, const Tensor& logits, std::vector<RowResult>& results) {
  const std::int64_t V = model_.config().V;
  const int ranks = control_->size();
  const Range tokens = model_.vocabulary();
  std::vector<std::int64_t> widths(static_cast<std::size_t>(ranks));
  const std::int64_t width = tokens.size();
  bool any = false;
  for (const RowUse& use : uses) any = any || use.wanted > 0;
  if (!any) return;
  all_gather(*control_, &width, widths.data(), 2, DType::kI32);
  const std::int64_t widest = *std::max_element(widths.begin(), widths.end());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const RowUse& use = uses[i];
    if (use.wanted == 0) continue;
    Tensor mine = Tensor::zeros({use.wanted, widest}, DType::kF32);
    for (std::int64_t row = 0; row < use.wanted; ++row) {
      std::memcpy(mine.mutable_row<float>(row), logits.row<float>(use.first + row),
                  static_cast<std::size_t>(width) * sizeof(float));
    }
    const bool is_first = control_->rank() == 0;
    const Tensor all = Tensor::empty({is_first ? ranks : 0, use.wanted, widest}, DType::kF32);
    control_->enqueue({.kind = CollectiveKind::kGather,
                       .send = mine.raw(),
                       .receive = all.mutable_raw(),
                       .count = static_cast<std::size_t>(mine.count()),
                       .type = DType::kF32},
                      Stream::cpu());
    if (!is_first) continue;
    Tensor rows = Tensor::empty({use.wanted, V}, DType::kF32);
    std::int64_t begin = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t count = widths[static_cast<std::size_t>(rank)];
      for (std::int64_t row = 0; row < use.wanted; ++row) {
        std::memcpy(rows.mutable_row<float>(row) + begin, all.row<float>(rank) + row * widest,
                    static_cast<std::size_t>(count) * sizeof(float));
      }
      begin += count;
    }
    results[i].logits = LogitsMade{.id = use.sequence->request.id, .position = use.position, .rows = rows};
  }
}

}  // namespace yoke
