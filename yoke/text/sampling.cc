#include "yoke/text/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/rng.h"

namespace yoke {
namespace {

constexpr int kLogprobsMost = 20;  // as the OpenAI API

void require(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::kInvalid, std::string(what));
}

std::size_t candidates_wanted(const SamplingOptions& options) {
  if (options.temperature == 0) return 1;
  if (options.top_k == 0) return kCandidatesMost;
  return std::min(kCandidatesMost, static_cast<std::size_t>(options.top_k));
}

bool better(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }
bool likelier(const Candidate& a, const Candidate& b) { return a.raw != b.raw ? a.raw > b.raw : a.id < b.id; }

// The best of those it is shown. Most are not: a heap with the worst kept at its front refuses them by one comparison.
class Best {
 public:
  using Order = bool (*)(const Candidate&, const Candidate&);
  Best(std::size_t most, Order order) : most_(most), order_(order) {}

  void show(const Candidate& candidate) {
    if (kept_.size() == most_) {
      if (most_ == 0 || !order_(candidate, kept_.front())) return;
      std::pop_heap(kept_.begin(), kept_.end(), order_);
      kept_.pop_back();
    }
    kept_.push_back(candidate);
    std::push_heap(kept_.begin(), kept_.end(), order_);
  }

  std::vector<Candidate> take() {
    std::sort(kept_.begin(), kept_.end(), order_);
    return std::move(kept_);
  }

 private:
  std::size_t most_;
  Order order_;
  std::vector<Candidate> kept_;
};

Mass mass_of(std::span<const float> logits, double scale) {
  Mass mass;
  for (const float logit : logits) mass.max = std::max(mass.max, logit * scale);
  if (std::isinf(mass.max)) return mass;
  for (const float logit : logits) mass.sum += std::exp(logit * scale - mass.max);
  return mass;
}

void check_numbers(std::span<const float> logits) {
  for (const float logit : logits) {
    if (std::isnan(logit) || logit == std::numeric_limits<float>::infinity()) {
      throw Error(ErrorCode::kInternal, "the model gave a logit that is not a number",
                  "the weights may be damaged: run 'yoke verify' on the model folder");
    }
  }
}

void penalize(float& logit, const TokenCounts::Count& count, const SamplingOptions& options) {
  logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
  if (count.in_answer == 0) return;
  logit -= options.frequency_penalty * static_cast<float>(count.in_answer) + options.presence_penalty;
}

// The logits with penalties and bias, or none where there are neither and a copy would be for nothing.
std::vector<float> adjusted(std::span<const float> logits, TokenId first, const SamplingOptions& options,
                            const TokenCounts& counts) {
  const bool penalized =
      options.repetition_penalty != 1 || options.frequency_penalty != 0 || options.presence_penalty != 0;
  if (!penalized && options.logit_bias.empty()) return {};
  std::vector<float> changed(logits.begin(), logits.end());
  const auto change = [&](TokenId id, auto action) {
    if (id >= first && static_cast<std::size_t>(id - first) < changed.size())
      action(changed[static_cast<std::size_t>(id - first)]);
  };
  if (penalized) {
    for (const auto& [id, count] : counts.counts()) {
      change(id, [&, &seen = count](float& logit) { penalize(logit, seen, options); });
    }
  }
  for (const LogitBias& entry : options.logit_bias) change(entry.id, [&](float& logit) { logit += entry.bias; });
  return changed;
}

// How many of the best the options leave to choose from; `weights` are relative to the best's. The best is always
// kept, whatever its weight was rounded to.
std::size_t count_kept(const std::vector<double>& weights, double total, const SamplingOptions& options) {
  std::size_t kept = 1;
  double reached = weights.front();
  while (kept < weights.size() && weights[kept] > 0) {
    const bool enough = reached >= static_cast<double>(options.top_p) * total;
    if (enough || weights[kept] < static_cast<double>(options.min_p)) break;
    reached += weights[kept++];
  }
  return kept;
}

TokenId draw(const HeadSlice& head, const SamplingOptions& options, std::uint64_t position) {
  const double scale = 1 / static_cast<double>(options.temperature);
  const double best = static_cast<double>(head.best.front().logit) * scale;
  std::vector<double> weights;
  double total = 0;
  for (const Candidate& candidate : head.best) {
    weights.push_back(std::exp(static_cast<double>(candidate.logit) * scale - best));
    total += weights.back();
  }
  // Without a top-k, top-p is of the whole vocabulary, also of what is no candidate.
  if (options.top_k == 0) total = head.mass.sum * std::exp(head.mass.max - best);
  const std::size_t kept = count_kept(weights, total, options);
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) sum += weights[i];
  const PhiloxBlock words = philox(options.seed, position);
  double rest = to_unit_double(words[0], words[1]) * sum;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    rest -= weights[i];
    if (rest < 0) return head.best[i].id;
  }
  return head.best[kept - 1].id;
}

}  // namespace

void check_sampling(const SamplingOptions& options, TokenId vocabulary_size) {
  require(options.temperature >= 0 && options.temperature <= 100, "the temperature must be from 0 to 100");
  require(options.top_k >= 0, "top_k must be 0 or more");
  require(options.top_p > 0 && options.top_p <= 1, "top_p must be above 0 and at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, "min_p must be from 0 to 1");
  require(options.repetition_penalty > 0 && options.repetition_penalty <= 100,
          "the repetition penalty must be above 0 and at most 100");
  require(std::abs(options.frequency_penalty) <= 100, "the frequency penalty must be from -100 to 100");
  require(std::abs(options.presence_penalty) <= 100, "the presence penalty must be from -100 to 100");
  require(!options.logprobs || (*options.logprobs >= 0 && *options.logprobs <= kLogprobsMost),
          "the number of log-probabilities must be from 0 to 20");
  for (const LogitBias& entry : options.logit_bias) {
    require(entry.id >= 0 && entry.id < vocabulary_size,
            fmt::format("a logit bias is for token {}, but the vocabulary has {} ids", entry.id, vocabulary_size));
    require(entry.bias <= 1000, "a logit bias must be a number of at most 1000");
  }
}

void TokenCounts::add_prompt(std::span<const TokenId> ids) {
  for (const TokenId id : ids) counts_[id].in_prompt = true;
}
void TokenCounts::add_answer(TokenId id) { ++counts_[id].in_answer; }

void Mass::add(const Mass& other) {
  if (std::isinf(other.max)) return;
  if (std::isinf(max)) {
    *this = other;
    return;
  }
  const double larger = std::max(max, other.max);
  sum = sum * std::exp(max - larger) + other.sum * std::exp(other.max - larger);
  max = larger;
}

double Mass::log() const { return max + std::log(sum); }

HeadSlice slice_head(std::span<const float> logits, TokenId first, const SamplingOptions& options,
                     const TokenCounts& counts) {
  check_numbers(logits);
  const std::vector<float> changed = adjusted(logits, first, options, counts);
  const std::span<const float> used = changed.empty() ? logits : std::span<const float>(changed);
  HeadSlice slice;
  Best best(candidates_wanted(options), better);
  for (std::size_t i = 0; i < used.size(); ++i) best.show({first + static_cast<TokenId>(i), used[i], logits[i]});
  slice.best = best.take();
  if (options.temperature > 0) slice.mass = mass_of(used, 1 / static_cast<double>(options.temperature));
  if (options.logprobs) {
    Best likeliest(static_cast<std::size_t>(*options.logprobs), likelier);
    for (std::size_t i = 0; i < used.size(); ++i) likeliest.show({first + static_cast<TokenId>(i), used[i], logits[i]});
    slice.likeliest = likeliest.take();
    slice.raw_mass = mass_of(logits, 1);
  }
  return slice;
}

HeadSlice merge_slices(std::span<const HeadSlice> slices) {
  HeadSlice merged;
  for (const HeadSlice& slice : slices) {
    merged.best.insert(merged.best.end(), slice.best.begin(), slice.best.end());
    merged.likeliest.insert(merged.likeliest.end(), slice.likeliest.begin(), slice.likeliest.end());
    merged.mass.add(slice.mass);
    merged.raw_mass.add(slice.raw_mass);
  }
  std::sort(merged.best.begin(), merged.best.end(), better);
  std::sort(merged.likeliest.begin(), merged.likeliest.end(), likelier);
  return merged;
}

Sampled sample(const HeadSlice& head, const SamplingOptions& options, std::uint64_t position) {
  if (head.best.empty() || std::isinf(head.best.front().logit)) {
    throw Error(ErrorCode::kInvalid, "no token is allowed here", "the logit bias forbids all of them");
  }
  // However many ranks gave candidates, the same are looked at: the best of all.
  HeadSlice cut = head;
  cut.best.resize(std::min(cut.best.size(), candidates_wanted(options)));
  Sampled sampled{.id = options.temperature == 0 ? cut.best.front().id : draw(cut, options, position)};
  if (!options.logprobs) return sampled;
  const double log_mass = head.raw_mass.log();
  const auto logprob = [&](const Candidate& token) {
    return static_cast<float>(static_cast<double>(token.raw) - log_mass);
  };
  const auto chosen = std::find_if(cut.best.begin(), cut.best.end(),
                                   [&](const Candidate& candidate) { return candidate.id == sampled.id; });
  sampled.logprob = logprob(*chosen);
  const std::size_t wanted = std::min(head.likeliest.size(), static_cast<std::size_t>(*options.logprobs));
  for (std::size_t i = 0; i < wanted; ++i) sampled.top.push_back({head.likeliest[i].id, logprob(head.likeliest[i])});
  return sampled;
}

}  // namespace yoke
