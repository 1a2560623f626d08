// What one step computes: the fresh tokens of some sequences, one after the other, and where their keys and values lie.
// Rank 0's scheduler decides it, a backend takes it once (Backend::begin_step), and every operation of the step uses
// it.
//
// Token t of a sequence is slot t % page_tokens of page number t / page_tokens of its list. The engine owns the pages.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace yoke::ops {

// One sequence in a step: `context` tokens are in its pages already, `fresh` ones come with this step (1 when decoding,
// a chunk of the prompt before).
struct StepSequence {
  std::int32_t first_row = 0;  // of its fresh tokens
  std::int32_t fresh = 1;
  std::int32_t context = 0;
  std::int32_t first_page = 0;  // index into StepBatch::pages
  std::int32_t pages = 0;       // how many are its own there
};

// Host memory, valid during begin_step() only.
struct StepBatch {
  std::span<const std::int32_t> ids;         // [T]
  std::span<const std::int32_t> positions;   // [T]: of a sequence's row i, context + i
  std::span<const StepSequence> sequences;   // their rows are dense and in order
  std::span<const std::int32_t> pages;       // of all sequences, one after the other
  std::span<const std::int32_t> logit_rows;  // rows that go to the head, ascending

  std::int64_t tokens() const { return std::ssize(ids); }
};

// The form in which a step is put together; to a backend it is given as a StepBatch.
struct StepRows {
  std::vector<std::int32_t> ids, positions, pages, logit_rows;
  std::vector<StepSequence> sequences;

  // The next sequence: its fresh ids follow by calls of ids.push_back, or at once.
  void add_sequence(std::int64_t context, std::span<const std::int32_t> fresh_ids,
                    std::span<const std::int32_t> own_pages) {
    sequences.push_back({.first_row = static_cast<std::int32_t>(ids.size()),
                         .fresh = static_cast<std::int32_t>(fresh_ids.size()),
                         .context = static_cast<std::int32_t>(context),
                         .first_page = static_cast<std::int32_t>(pages.size()),
                         .pages = static_cast<std::int32_t>(own_pages.size())});
    for (std::size_t i = 0; i < fresh_ids.size(); ++i) {
      ids.push_back(fresh_ids[i]);
      positions.push_back(static_cast<std::int32_t>(context) + static_cast<std::int32_t>(i));
    }
    pages.insert(pages.end(), own_pages.begin(), own_pages.end());
  }
  void clear() {
    for (auto* list : {&ids, &positions, &pages, &logit_rows}) list->clear();
    sequences.clear();
  }
  StepBatch batch() const { return {ids, positions, sequences, pages, logit_rows}; }
};

// Where pages are: how many there are, and how many tokens each holds. A step must fit into it.
struct PageRoom {
  std::int64_t pages = 0;
  std::int64_t page_tokens = 1;
};

// A step that breaks a rule above is a bug of the code that planned it (YOKE_CHECK): requests are checked before.
void check_step(const StepBatch& batch, const PageRoom& room);

}  // namespace yoke::ops
