#include "yoke/ops/timed_backend.h"

#include "yoke/base/clock.h"

namespace yoke::ops {

const char* TimedBackend::text(Name name) {
  switch (name) {
    case Name::kPrepare:
      return "begin of a step";
    case Name::kEmbed:
      return "embedding";
    case Name::kNorm:
      return "norms";
    case Name::kQkv:
      return "q, k, v";
    case Name::kPlaceHeads:
      return "rotary, cache";
    case Name::kAttention:
      return "attention";
    case Name::kOut:
      return "o";
    case Name::kGateUp:
      return "gate, up";
    case Name::kDown:
      return "down";
    case Name::kRoute:
      return "router";
    case Name::kExperts:
      return "experts";
    case Name::kPick:
      return "rows of the head";
    case Name::kHead:
      return "head";
    case Name::kSelect:
      return "selection";
    case Name::kCount:
      break;
  }
  return "";
}

template <class Call>
void TimedBackend::timed(Name name, double bytes, double operations, const Call& call) {
  const Instant start = real_clock().now();
  const std::size_t begin = timer_ ? timer_->mark() : 0;
  call();
  OperationTime& time = times_[static_cast<std::size_t>(name)];
  const Instant end = real_clock().now();
  if (timer_) {
    on_device_.push_back({name, begin, timer_->mark()});
  } else {
    time.seconds += to_seconds(end - start).value;
  }
  if (spans_ != nullptr) spans_->add({.name = text(name), .begin = start, .end = end, .bytes = bytes});
  ++time.calls;
  time.bytes += bytes;
  time.operations += operations;
  before_ = name;
}

void TimedBackend::add_device_times() {
  for (const OnDevice& one : on_device_) {
    times_[static_cast<std::size_t>(one.name)].seconds += timer_->seconds(one.begin, one.end);
  }
  on_device_.clear();
  if (timer_) timer_->forget();
}

std::vector<OperationTime> TimedBackend::take_times() {
  add_device_times();
  std::vector<OperationTime> taken;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    if (times_[i].calls == 0) continue;
    times_[i].name = text(static_cast<Name>(i));
    taken.push_back(times_[i]);
  }
  times_ = {};
  return taken;
}

OperationShares TimedBackend::take_shares() {
  add_device_times();
  OperationShares shares;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    OperationTime& time = times_[i];
    switch (static_cast<Name>(i)) {
      case Name::kQkv:
      case Name::kOut:
      case Name::kGateUp:
      case Name::kDown:
      case Name::kRoute:
      case Name::kExperts:
      case Name::kHead:
        shares.weights += time.seconds;
        shares.weight_bytes += time.bytes;
        shares.operations += time.operations;
        break;
      case Name::kAttention:
        shares.cache += time.seconds;
        break;
      default:
        shares.others += time.seconds;
        break;
    }
    time.calls = 0;
    time.seconds = time.bytes = time.operations = 0;
  }
  return shares;
}

void TimedBackend::begin_step(const StepBatch& batch, const PageRoom& room, const Rope& rope) {
  keys_read_ = scores_ = 0;
  for (const StepSequence& sequence : batch.sequences) {
    const double fresh = sequence.fresh, context = sequence.context;
    keys_read_ += context + fresh;
    scores_ += fresh * context + fresh * (fresh + 1) / 2;
  }
  timed(Name::kPrepare, 0, 0, [&] { inner_->begin_step(batch, room, rope); });
}

void TimedBackend::embed(const PackedStack& table, std::int32_t first_id, const Slab& x) {
  timed(Name::kEmbed, 0, 0, [&] { inner_->embed(table, first_id, x); });
}

void TimedBackend::norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) {
  timed(Name::kNorm, 0, 0, [&] { inner_->norm(x, residual, weight, epsilon, y); });
}

void TimedBackend::add(const Slab& x, const Slab& residual) {
  timed(Name::kNorm, 0, 0, [&] { inner_->add(x, residual); });
}

void TimedBackend::linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options) {
  const auto rows = static_cast<double>(x.extent(0));
  const double operations = 2 * rows * static_cast<double>(weight.rows()) * static_cast<double>(weight.columns());
  Name name = Name::kDown;
  if (options.activation == Activation::kSwiglu) {
    name = Name::kGateUp;
  } else if (before_ == Name::kPick) {
    name = Name::kHead;
  } else if (before_ == Name::kAttention) {
    name = Name::kOut;
  } else if (before_ == Name::kNorm) {
    name = weight.parts().size() == 3 ? Name::kQkv : Name::kRoute;
  }
  timed(name, rows > 0 ? static_cast<double>(weight.bytes()) : 0, operations,
        [&] { inner_->linear(weight, x, y, options); });
}

void TimedBackend::place_heads(const Slab& qkv, const HeadsOptions& options, const CacheLayer& cache, const Slab& q) {
  timed(Name::kPlaceHeads, 0, 0, [&] { inner_->place_heads(qkv, options, cache, q); });
}

void TimedBackend::attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) {
  const auto kv_heads = static_cast<double>(cache.keys.extent(1));
  const auto width = static_cast<double>(cache.keys.extent(3));
  const double bytes = keys_read_ * kv_heads * width * 2 * static_cast<double>(tensor::size_of(cache.keys.type));
  timed(Name::kAttention, bytes, 4 * scores_ * static_cast<double>(q.extent(1)) * width,
        [&] { inner_->attend(q, cache, y, options); });
}

void TimedBackend::pick_rows(const Slab& x, const Slab& y) {
  timed(Name::kPick, 0, 0, [&] { inner_->pick_rows(x, y); });
}

void TimedBackend::route(const Slab& scores, const RouteOptions& options, const Slab& ids, const Slab& weights) {
  timed(Name::kRoute, 0, 0, [&] { inner_->route(scores, options, ids, weights); });
}

// At most all experts, at least those of one token: the bytes are those of the choices, as far as there are so many.
void TimedBackend::experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids,
                           const Slab& weights, const Slab& y) {
  const auto all = static_cast<double>(down.parts().size());
  const auto used = static_cast<double>(ids.extent(0) * ids.extent(1));
  const double values = static_cast<double>(gate_up.rows()) * static_cast<double>(gate_up.columns()) +
                        static_cast<double>(down.rows()) * static_cast<double>(down.columns());
  timed(Name::kExperts, static_cast<double>(gate_up.bytes() + down.bytes()) * std::min(1.0, used / all),
        2 * values / all * used, [&] { inner_->experts(gate_up, down, x, ids, weights, y); });
}

void TimedBackend::select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows,
                          const Slab& blocks) {
  timed(Name::kSelect, 0, 0, [&] { inner_->select(logits, first_id, rows, blocks); });
}

}  // namespace yoke::ops
