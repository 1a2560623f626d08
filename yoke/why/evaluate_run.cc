#include "yoke/why/evaluate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace yoke::why {
namespace {

using spec::RankAccount;
using spec::StepAccount;
using spec::StepSums;

constexpr std::size_t kHealthyRuns = 3;  // so many make an expectation
constexpr double kHealthySpread = 1.5;   // beyond the longest of them,
constexpr double kHealthyFactor = 2.0;   // and times their median
constexpr double kOffShare = 0.2;        // of the step, that a term must be too long by
constexpr double kStepsEnough = 8;
constexpr double kSmallExchange = 16 << 10;  // bytes: below, an exchange is all latency

double per_step(double value, const StepSums& sums) { return sums.steps > 0 ? value / sums.steps : 0; }

// Rank 0 plans, tells the front, and waits for the others: the parts of its step are the step.
const StepSums& decode_of(const StepAccount& account) { return account.ranks.front().decode; }
const StepSums& prefill_of(const StepAccount& account) { return account.ranks.front().prefill; }

struct Exchanged {
  double itself = 0;
  double waiting = 0;
};
Exchanged exchanged(const StepSums& sums, const spec::ExchangeShares& shares) {
  if (shares.waiting.empty()) return {per_step(sums.exchange, sums), 0};
  return {shares.seconds, shares.waiting.front()};
}

double weights_term(const StepAccount& a) { return per_step(decode_of(a).weights, decode_of(a)); }
double cache_term(const StepAccount& a) { return per_step(decode_of(a).cache, decode_of(a)); }
double fixed_term(const StepAccount& a) {
  return per_step(decode_of(a).others + std::max(0.0, decode_of(a).rest()), decode_of(a));
}
double exchange_term(const StepAccount& a) { return exchanged(decode_of(a), a.decode).itself; }
double waiting_term(const StepAccount& a) { return exchanged(decode_of(a), a.decode).waiting; }

double per_token(double value, const StepSums& sums) { return sums.tokens > 0 ? value / sums.tokens : 0; }
double prompt_computing(const StepAccount& a) {
  return per_token(prefill_of(a).computing() + std::max(0.0, prefill_of(a).rest()), prefill_of(a));
}
double prompt_exchange(const StepAccount& a) {
  return per_token(exchanged(prefill_of(a), a.prefill).itself * prefill_of(a).steps, prefill_of(a));
}
double prompt_waiting(const StepAccount& a) {
  return per_token(exchanged(prefill_of(a), a.prefill).waiting * prefill_of(a).steps, prefill_of(a));
}

using TermOf = std::function<double(const StepAccount&)>;

std::optional<Expectation> from_history(const std::vector<StepAccount>& healthy, const TermOf& term) {
  std::vector<double> values;
  for (const StepAccount& account : healthy) {
    if (!account.ranks.empty()) values.push_back(term(account));
  }
  if (values.size() < kHealthyRuns) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  return Expectation{.value = median,
                     .low = values.front(),
                     .high = std::max(kHealthySpread * values.back(), kHealthyFactor * median),
                     .source = fmt::format("{} healthy runs", values.size())};
}

std::optional<Expectation> from_plan(const RunQuestion& q, double value) {
  if (!q.planned || value <= 0) return std::nullopt;
  return Expectation{.value = value,
                     .low = value / q.planned->spread,
                     .high = value * q.planned->spread,
                     .source = q.planned->is_calibrated ? "plan, calibrated" : "plan"};
}

std::optional<Expectation> expect(const RunQuestion& q, const TermOf& term, double planned) {
  if (auto known = from_history(q.healthy, term)) return known;
  return from_plan(q, planned);
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e6) return fmt::format("{:.3g} MB", bytes / 1e6);
  return bytes >= 1e3 ? fmt::format("{:.3g} kB", bytes / 1e3) : fmt::format("{:.0f} bytes", bytes);
}

std::string exchange_detail(const StepSums& sums) {
  if (sums.exchanges <= 0 || sums.steps <= 0) return "";
  return fmt::format("{:.0f} of {}", sums.exchanges / sums.steps, bytes_text(sums.exchange_bytes / sums.exchanges));
}

std::string read_detail(const StepSums& sums) {
  if (sums.weights <= 0 || sums.weight_bytes <= 0) return "";
  return fmt::format("{:.3g} GB/s", sums.weight_bytes / sums.weights / 1e9);
}

void add_row(StepTable& table, const std::string& name, double measured, std::optional<Expectation> expected,
             std::string detail = {}) {
  if (measured <= 0 && !expected) return;
  table.rows.push_back({.name = name,
                        .measured = measured,
                        .share = table.seconds > 0 ? measured / table.seconds : 0,
                        .expected = std::move(expected),
                        .detail = std::move(detail)});
}

StepTable decode_table(const RunQuestion& q) {
  const StepAccount& a = q.account;
  const StepSums& sums = decode_of(a);
  const PlannedStep planned = q.planned ? q.planned->decode : PlannedStep{};
  StepTable table{.title = "a step that makes tokens",
                  .seconds = per_step(sums.seconds, sums),
                  .tokens = per_step(sums.tokens, sums),
                  .rows = {}};
  add_row(table, "weights", weights_term(a), expect(q, weights_term, planned.weights), read_detail(sums));
  add_row(table, "cache", cache_term(a), expect(q, cache_term, planned.cache));
  add_row(table, "fixed cost", fixed_term(a), expect(q, fixed_term, planned.fixed));
  if (a.ranks.size() < 2 && sums.exchange <= 0) return table;
  add_row(table, "all-reduce", exchange_term(a), expect(q, exchange_term, planned.exchange), exchange_detail(sums));
  add_row(table, "waiting", waiting_term(a), from_history(q.healthy, waiting_term));
  return table;
}

StepTable prefill_table(const RunQuestion& q) {
  const StepAccount& a = q.account;
  const StepSums& sums = prefill_of(a);
  StepTable table{.title = "a token of a prompt", .seconds = per_token(sums.seconds, sums), .tokens = 1, .rows = {}};
  const double steps = sums.tokens > 0 ? sums.steps / sums.tokens : 0;
  add_row(table, "computing", prompt_computing(a),
          expect(q, prompt_computing, q.planned ? q.planned->prefill_computing : 0));
  if (a.ranks.size() < 2 && sums.exchange <= 0) return table;
  add_row(table, "all-reduce", prompt_exchange(a),
          expect(q, prompt_exchange, q.planned ? q.planned->prefill_exchange * steps : 0), exchange_detail(sums));
  add_row(table, "waiting", prompt_waiting(a), from_history(q.healthy, prompt_waiting));
  return table;
}

std::string next_for(const std::string& term, const std::string& options) {
  if (term == "all-reduce") return "yoke check" + options;
  if (term == "waiting") return "yoke watch" + options;
  return term == "fixed cost" ? "yoke bench engine" : "yoke bench memory";
}

bool is_measured_here(const RunQuestion& q, const Expectation& expected) {
  return expected.source != "plan" && (expected.source != "plan, calibrated" || q.planned->is_calibrated);
}

void find_terms_off(const RunQuestion& q, const StepTable& table, Answer& answer) {
  for (const TermRow& row : table.rows) {
    if (!row.expected || !is_measured_here(q, *row.expected)) continue;
    const double excess = row.measured - row.expected->value;
    if (row.measured <= row.expected->high || excess < kOffShare * table.seconds) continue;
    answer.blames.push_back(
        {.cause = Cause::kTermOff,
         .term = row.name,
         .what = fmt::format("{} takes {} of {}, expected {}.", row.name, time_text(row.measured), table.title,
                             time_text(row.expected->value)),
         .evidence = fmt::format("Healthy is up to {} ({}).", time_text(row.expected->high), row.expected->source),
         .next = next_for(row.name, q.options),
         .where = {}});
  }
}

std::string limit_text(const RunQuestion& q, const TermRow& row) {
  const StepSums& sums = decode_of(q.account);
  const double share = 100 * row.share;
  if (row.name == "weights") {
    const double rate = sums.weights > 0 ? sums.weight_bytes / sums.weights : 0;
    const double most = q.planned ? q.planned->read_rate : 0;
    const std::string of = most > 0 ? fmt::format(" of {:.3g} GB/s", most / 1e9) : "";
    return fmt::format("memory bandwidth: reading the weights takes {:.0f}% of a step, at {:.3g} GB/s{}", share,
                       rate / 1e9, of);
  }
  if (row.name == "cache")
    return fmt::format("memory bandwidth: reading keys and values takes {:.0f}% of a step", share);
  if (row.name == "fixed cost") return fmt::format("the fixed cost of a step: {:.0f}% of it", share);
  if (row.name == "waiting") return fmt::format("ranks that wait for each other: {:.0f}% of a step", share);
  if (sums.exchanges > 0 && sums.exchange_bytes / sums.exchanges < kSmallExchange) {
    return fmt::format("the latency of the link: {:.0f}% of a step is {} exchanges of {} each", share,
                       fmt::format("{:.0f}", sums.exchanges / sums.steps),
                       time_text(row.measured * sums.steps / sums.exchanges));
  }
  return fmt::format("the rate of the link: {:.0f}% of a step", share);
}

void add_limit(const RunQuestion& q, Answer& answer) {
  for (const StepTable& table : answer.steps) {
    if (table.rows.empty()) continue;
    const auto most = std::ranges::max_element(table.rows, {}, &TermRow::measured);
    if (table.title != "a token of a prompt") {
      answer.limit = limit_text(q, *most);
    } else {
      answer.limit = most->name == "computing"
                         ? fmt::format("arithmetic: {:.0f}% of reading a prompt", 100 * most->share)
                         : fmt::format("the link: {:.0f}% of reading a prompt", 100 * most->share);
    }
    return;
  }
}

void add_notes(const RunQuestion& q, Answer& answer) {
  const StepAccount& a = q.account;
  const StepSums& mixed = a.ranks.front().mixed;
  if (mixed.steps > 0) {
    answer.notes.push_back(fmt::format("{:.0f} steps also read prompts of other requests, {} each.", mixed.steps,
                                       time_text(per_step(mixed.seconds, mixed))));
  }
  const bool is_known = q.healthy.size() >= kHealthyRuns || (q.planned && q.planned->is_calibrated);
  if (is_disturbed(a)) {
    answer.notes.emplace_back(
        "The processors were not free during the run: its times were not compared with what was expected.");
  } else if (!is_known) {
    answer.notes.push_back(fmt::format(
        "Nothing was measured here before: times were not compared. 'yoke bench calibrate{}' measures these "
        "machines once.",
        q.options));
  }
  if (decode_of(a).steps < kStepsEnough && prefill_of(a).steps < kStepsEnough) {
    answer.notes.emplace_back("The run was short: a longer answer (-n 200) gives more to judge by.");
  }
}

}  // namespace

void evaluate_terms(const RunQuestion& question, Answer& answer) {
  // What is explained is not told twice, and a busy machine proves nothing.
  if (!answer.blames.empty() || is_disturbed(question.account)) return;
  for (const StepTable& table : answer.steps) {
    const bool is_decode = table.title != "a token of a prompt";
    const StepSums& sums = is_decode ? decode_of(question.account) : prefill_of(question.account);
    if (sums.steps >= kStepsEnough) find_terms_off(question, table, answer);
  }
}

Answer evaluate_run(const RunQuestion& question) {
  Answer answer{.subject = question.subject, .steps = {}, .blames = {}, .limit = {}, .notes = {}};
  if (question.account.ranks.empty()) {
    answer.notes.emplace_back("The run has no account of its steps.");
    return answer;
  }
  if (decode_of(question.account).steps > 0) answer.steps.push_back(decode_table(question));
  if (prefill_of(question.account).steps > 0) answer.steps.push_back(prefill_table(question));
  evaluate_rails(question, answer);
  evaluate_ranks(question, answer);
  evaluate_terms(question, answer);
  if (answer.blames.empty()) add_limit(question, answer);
  add_notes(question, answer);
  return answer;
}

}  // namespace yoke::why
