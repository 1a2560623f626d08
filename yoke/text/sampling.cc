#include "yoke/text/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/rng.h"

namespace yoke::text {
namespace {

constexpr int kMaxLogprobs = 20;  // as the OpenAI API

void require(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::kInvalid, std::string(what));
}

bool better(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }
bool likelier(const Candidate& a, const Candidate& b) { return a.raw != b.raw ? a.raw > b.raw : a.id < b.id; }

using Order = bool (*)(const Candidate&, const Candidate&);

// The first `most` of several lists that are in order, in order.
std::vector<Candidate> merged_lists(std::span<const HeadSlice> slices, std::vector<Candidate> HeadSlice::*list,
                                    std::size_t most, Order order) {
  std::vector<std::size_t> next(slices.size());
  std::vector<Candidate> merged;
  while (merged.size() < most) {
    const Candidate* first = nullptr;
    std::size_t of = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const std::vector<Candidate>& candidates = slices[i].*list;
      if (next[i] == candidates.size()) continue;
      if (first == nullptr || order(candidates[next[i]], *first)) {
        first = &candidates[next[i]];
        of = i;
      }
    }
    if (first == nullptr) break;
    merged.push_back(*first);
    ++next[of];
  }
  return merged;
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

std::size_t candidates_wanted(const SamplingOptions& options) {
  if (options.temperature == 0) return 1;
  if (options.top_k == 0) return kMaxCandidates;
  return std::min(kMaxCandidates, static_cast<std::size_t>(options.top_k));
}

void check_sampling(const SamplingOptions& options, TokenId vocabulary_size) {
  require(options.temperature >= 0 && options.temperature <= 100, "the temperature must be from 0 to 100");
  require(options.top_k >= 0, "top_k must be 0 or more");
  require(options.top_p > 0 && options.top_p <= 1, "top_p must be above 0 and at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, "min_p must be from 0 to 1");
  require(options.repetition_penalty > 0 && options.repetition_penalty <= 100,
          "the repetition penalty must be above 0 and at most 100");
  require(std::abs(options.frequency_penalty) <= 100, "the frequency penalty must be from -100 to 100");
  require(std::abs(options.presence_penalty) <= 100, "the presence penalty must be from -100 to 100");
  require(!options.logprobs || (*options.logprobs >= 0 && *options.logprobs <= kMaxLogprobs),
          "the number of log-probabilities must be from 0 to 20");
  for (const LogitBias& entry : options.logit_bias) {
    require(entry.id >= 0 && entry.id < vocabulary_size,
            fmt::format("a logit bias is for token {}, but the vocabulary has {} ids", entry.id, vocabulary_size));
    require(entry.bias <= 1000, "a logit bias must be a number of at most 1000");
  }
}

void LogSumExp::add(const LogSumExp& other) {
  if (std::isinf(other.max)) return;
  if (std::isinf(max)) {
    *this = other;
    return;
  }
  const double larger = std::max(max, other.max);
  sum = sum * std::exp(max - larger) + other.sum * std::exp(other.max - larger);
  max = larger;
}

double LogSumExp::log() const { return max + std::log(sum); }

HeadSlice merge_slices(std::span<const HeadSlice> slices, std::size_t most) {
  HeadSlice merged;
  for (const HeadSlice& slice : slices) {
    merged.mass.add(slice.mass);
    merged.raw_mass.add(slice.raw_mass);
  }
  merged.best = merged_lists(slices, &HeadSlice::best, most, better);
  merged.likeliest = merged_lists(slices, &HeadSlice::likeliest, most, likelier);
  return merged;
}

SampledToken sample(const HeadSlice& head, const SamplingOptions& options, std::uint64_t position) {
  if (head.best.empty() || std::isinf(head.best.front().logit)) {
    throw Error(ErrorCode::kInvalid, "no token is allowed here",
                "the logit bias or the schema of the answer forbids all of them");
  }
  // However many ranks gave candidates, the same are looked at: the best of all.
  HeadSlice cut = head;
  cut.best.resize(std::min(cut.best.size(), candidates_wanted(options)));
  SampledToken sampled{.id = options.temperature == 0 ? cut.best.front().id : draw(cut, options, position)};
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

}  // namespace yoke::text
