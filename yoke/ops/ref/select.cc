// The best candidates of rows of logits and the mass of all, in pieces of a fixed size: the same sums on any number of
// threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "yoke/ops/ref/backend.h"

namespace yoke::ops::ref {
namespace {

constexpr std::int64_t kPiece = 8192;  // logits
constexpr double kNothing = -std::numeric_limits<double>::infinity();

bool is_better(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }
bool is_likelier(const Candidate& a, const Candidate& b) { return a.raw != b.raw ? a.raw > b.raw : a.id < b.id; }
using Order = bool (*)(const Candidate&, const Candidate&);

// The first `count` of the order; the worst kept lies at the front of a heap.
void keep_best(std::vector<Candidate>& kept, std::size_t count, Order order, const Candidate& candidate) {
  if (kept.size() == count) {
    if (count == 0 || !order(candidate, kept.front())) return;
    std::pop_heap(kept.begin(), kept.end(), order);
    kept.back() = candidate;
  } else {
    kept.push_back(candidate);
  }
  std::push_heap(kept.begin(), kept.end(), order);
}

// With penalties, bias and mask, as the slot has them.
void change_row(const Slot& slot, std::int32_t first_id, std::span<float> row) {
  const auto logit_of = [&](std::int32_t id) -> float* {
    const std::int64_t at = std::int64_t{id} - first_id;
    return at >= 0 && at < std::ssize(row) ? &row[static_cast<std::size_t>(at)] : nullptr;
  };
  for (const auto& [id, count] : slot.counts) {
    float* const logit = logit_of(id);
    if (logit == nullptr) continue;
    *logit = *logit > 0 ? *logit / slot.repetition_penalty : *logit * slot.repetition_penalty;
    if (count.in_answer == 0) continue;
    *logit -= slot.frequency_penalty * static_cast<float>(count.in_answer) + slot.presence_penalty;
  }
  for (const TokenBias& entry : slot.bias) {
    if (float* const logit = logit_of(entry.id)) *logit += entry.bias;
  }
  if (!slot.has_mask) return;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::size_t id = static_cast<std::size_t>(first_id) + i;
    const bool allowed = id / 32 < slot.allowed.size() && (slot.allowed[id / 32] >> id % 32 & 1U) != 0;
    if (!allowed) row[i] = -std::numeric_limits<float>::infinity();
  }
}

template <class T>
std::int32_t* put(std::int32_t* words, const T& value) {
  std::memcpy(words, &value, sizeof value);
  return words + sizeof value / sizeof *words;
}

// The candidates of all pieces, best first.
void join(std::span<SelectPart> parts, std::vector<Candidate> SelectPart::*list, std::size_t count, Order order) {
  std::vector<Candidate>& all = parts.front().*list;
  for (SelectPart& part : parts.subspan(1)) all.insert(all.end(), (part.*list).begin(), (part.*list).end());
  std::sort(all.begin(), all.end(), order);
  all.resize(std::min(all.size(), count));
}

void write_block(std::span<SelectPart> parts, const SelectRow& select, std::span<std::int32_t> block) {
  std::fill(block.begin(), block.end(), 0);
  for (const SelectPart& part : parts) {
    if (!part.numbers) return;
  }
  join(parts, &SelectPart::best, static_cast<std::size_t>(select.count), is_better);
  join(parts, &SelectPart::likeliest, static_cast<std::size_t>(select.raw_count), is_likelier);
  double sum = 0, raw_sum = 0;
  for (const SelectPart& part : parts) {
    sum += part.sum;
    raw_sum += part.raw_sum;
  }
  const SelectPart& all = parts.front();
  YOKE_CHECK(select_words(all.best.size() + all.likeliest.size()) <= block.size(), "{} words for {} and {} candidates",
             block.size(), all.best.size(), all.likeliest.size());
  std::int32_t* words = put(block.data(), std::int32_t{1});
  words = put(words, static_cast<std::int32_t>(all.best.size()));
  words = put(words, static_cast<std::int32_t>(all.likeliest.size()));
  for (const double number : {all.max, sum, all.raw_max, raw_sum}) words = put(words, number);
  for (const auto* list : {&all.best, &all.likeliest}) {
    for (const Candidate& candidate : *list) words = put(put(put(words, candidate.id), candidate.logit), candidate.raw);
  }
}

}  // namespace

void RefBackend::open_slot(std::int32_t slot, const SlotOptions& options) {
  const auto [place, is_new] = slots_.try_emplace(slot);
  YOKE_CHECK(is_new, "slot {} is open already", slot);
  Slot& one = place->second;
  one.repetition_penalty = options.repetition_penalty;
  one.frequency_penalty = options.frequency_penalty;
  one.presence_penalty = options.presence_penalty;
  one.bias.assign(options.bias.begin(), options.bias.end());
  one.allowed.assign(options.allowed.begin(), options.allowed.end());
  one.has_mask = !options.allowed.empty();
  one.penalizes = options.penalizes();
  if (!one.penalizes) return;  // a long prompt is not counted for nothing
  for (const std::int32_t id : options.prompt) one.counts[id].in_prompt = true;
  for (const std::int32_t id : options.answer) ++one.counts[id].in_answer;
}

void RefBackend::count_token(std::int32_t slot, std::int32_t id) {
  const auto found = slots_.find(slot);
  YOKE_CHECK(found != slots_.end(), "slot {} is not open", slot);
  if (found->second.penalizes) ++found->second.counts[id].in_answer;
}

void RefBackend::close_slot(std::int32_t slot) { YOKE_CHECK(slots_.erase(slot) == 1, "slot {} is not open", slot); }

void RefBackend::clear(SelectPart& part) {
  part.best.clear();
  part.likeliest.clear();
  part.max = part.raw_max = kNothing;
  part.numbers = true;
}

void RefBackend::inspect(const RowLogits& row, const SelectRow& select, std::size_t at, SelectPart& part) {
  const Candidate candidate{row.first_id + static_cast<std::int32_t>(at), row.used[at], row.raw[at]};
  if (std::isnan(candidate.raw) || candidate.raw == std::numeric_limits<float>::infinity()) part.numbers = false;
  keep_best(part.best, static_cast<std::size_t>(select.count), is_better, candidate);
  if (select.temperature > 0)
    part.max = std::max(part.max, candidate.logit * (1 / static_cast<double>(select.temperature)));
  if (!select.raw_mass) return;
  keep_best(part.likeliest, static_cast<std::size_t>(select.raw_count), is_likelier, candidate);
  part.raw_max = std::max(part.raw_max, static_cast<double>(candidate.raw));
}

void RefBackend::inspect_piece(const RowLogits& row, const SelectRow& select, tensor::Range range,
                               SelectPart& part) const {
  clear(part);
  for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i) {
    inspect(row, select, i, part);
  }
}

double RefBackend::mass_of_piece(std::span<const float> logits, double scale, double max) const {
  if (std::isinf(max)) return 0;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit * scale - max);
  return sum;
}

void RefBackend::select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows,
                        const Slab& blocks) {
  const Sight sight(*this);
  const std::int64_t V = logits.extent(1);
  YOKE_CHECK(blocks.shape.rank() == 2 && blocks.extent(0) == std::ssize(rows), "{} for {} rows",
             to_string(blocks.shape), rows.size());
  const std::int64_t pieces = std::max<std::int64_t>(1, tensor::ceil_divide(V, kPiece));
  const std::int64_t count = std::ssize(rows);
  select_parts_.resize(std::max(select_parts_.size(), static_cast<std::size_t>(count * pieces)));
  changed_.resize(std::max(changed_.size(), static_cast<std::size_t>(count * V)));
  select_rows_.resize(static_cast<std::size_t>(count));
  const auto logits_of = [&](std::int64_t r) -> RowLogits {
    const SelectRow& select = rows[static_cast<std::size_t>(r)];
    const std::span<const float> raw(floats(logits) + select.logit_row * V, static_cast<std::size_t>(V));
    const std::span<const float> changed(changed_.data() + r * V, static_cast<std::size_t>(V));
    return {.raw = raw, .used = slots_.at(select.slot).changes() ? changed : raw, .first_id = first_id};
  };
  const auto row_of = [&](std::int64_t r) -> const RowLogits& { return select_rows_[static_cast<std::size_t>(r)]; };
  const auto parts_of = [&](std::int64_t r) {
    return std::span(select_parts_).subspan(static_cast<std::size_t>(r * pieces), static_cast<std::size_t>(pieces));
  };
  const auto range_of = [&](std::int64_t piece) {
    return tensor::Range{piece * kPiece, std::min(V, (piece + 1) * kPiece)};
  };
  pool_.parallel_for(count, 1, [&](tensor::Range range) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      const SelectRow& select = rows[static_cast<std::size_t>(r)];
      YOKE_CHECK(select.logit_row >= 0 && select.logit_row < logits.extent(0) && slots_.contains(select.slot),
                 "row {} of {}, slot {}", select.logit_row, logits.extent(0), select.slot);
      if (slots_.at(select.slot).changes()) {
        float* const changed = changed_.data() + r * V;
        std::copy_n(floats(logits) + select.logit_row * V, V, changed);
        change_row(slots_.at(select.slot), first_id, {changed, static_cast<std::size_t>(V)});
      }
      RowLogits& row = select_rows_[static_cast<std::size_t>(r)];
      row = logits_of(r);
      bound_row(select, row);
    }
  });
  pool_.parallel_for(count * pieces, 1, [&](tensor::Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      inspect_piece(row_of(i / pieces), rows[static_cast<std::size_t>(i / pieces)], range_of(i % pieces),
                    select_parts_[static_cast<std::size_t>(i)]);
    }
  });
  for (std::int64_t r = 0; r < count; ++r) {
    for (const SelectPart& part : parts_of(r)) {
      parts_of(r).front().max = std::max(parts_of(r).front().max, part.max);
      parts_of(r).front().raw_max = std::max(parts_of(r).front().raw_max, part.raw_max);
    }
  }
  pool_.parallel_for(count * pieces, 1, [&](tensor::Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const SelectRow& select = rows[static_cast<std::size_t>(i / pieces)];
      const SelectPart& first = parts_of(i / pieces).front();
      SelectPart& part = select_parts_[static_cast<std::size_t>(i)];
      const RowLogits& row = row_of(i / pieces);
      const tensor::Range piece = range_of(i % pieces);
      const auto of_piece = [&](std::span<const float> all) {
        return all.subspan(static_cast<std::size_t>(piece.begin), static_cast<std::size_t>(piece.size()));
      };
      const double scale = select.temperature > 0 ? 1 / static_cast<double>(select.temperature) : 0;
      part.sum = select.temperature > 0 ? mass_of_piece(of_piece(row.used), scale, first.max) : 0;
      part.raw_sum = select.raw_mass ? mass_of_piece(of_piece(row.raw), 1, first.raw_max) : 0;
    }
  });
  const std::int64_t words = blocks.extent(1);
  for (std::int64_t r = 0; r < count; ++r) {
    write_block(parts_of(r), rows[static_cast<std::size_t>(r)],
                {ref::words(blocks) + r * words, static_cast<std::size_t>(words)});
  }
}

}  // namespace yoke::ops::ref
