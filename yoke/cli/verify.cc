// yoke verify: the engine against what another implementation computed from the same model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_session.h"
#include "yoke/cli/golden.h"
#include "yoke/report/table.h"
#include "yoke/serve/model_text.h"

namespace yoke {
namespace {

struct VerifyArguments {
  EngineArguments engine;
  std::optional<double> tolerance;
};
constexpr double kTolerance = 1e-4;  // relative to the largest logit: what f32 sums in another order differ by

struct Verified {
  std::string name;
  std::size_t prompt_tokens = 0;
  std::optional<double> relative_error;   // nothing where there are no logits to compare with
  std::vector<TokenId> expected, greedy;  // what should follow, and what did
  std::optional<bool> same_ids;           // tokenizer and template give the prompt's ids; nothing where not asked

  std::size_t agreeing() const {  // tokens, up to the first that differs
    return static_cast<std::size_t>(
        std::mismatch(expected.begin(), expected.end(), greedy.begin(), greedy.end()).first - expected.begin());
  }
  bool agrees(double tolerance) const {
    // Also false for an error that is no number.
    const bool near = !relative_error || *relative_error <= tolerance;
    return near && agreeing() == expected.size() && same_ids.value_or(true);
  }
};

// The largest difference, over the largest golden logit.
class LogitsCheck {
 public:
  explicit LogitsCheck(const GoldenCase& one)
      : golden_(one.logits), first_(std::ssize(one.ids) - (one.logits ? one.logits->extent(0) : 0)) {}

  void take(const LogitsMade& made) {
    if (!golden_) return;
    if (made.rows.extent(1) != golden_->extent(1)) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("the model has {} logits for a token, its golden.safetensors {}", made.rows.extent(1),
                              golden_->extent(1)),
                  "are they of the same model?");
    }
    for (std::int64_t row = 0; row < made.rows.extent(0); ++row) {
      const std::int64_t at = made.position + row - first_;
      if (at < 0 || at >= golden_->extent(0)) continue;
      compare(made.rows.row<float>(row), golden_->row<float>(at), golden_->extent(1));
      ++rows_;
    }
  }

  std::optional<double> relative_error() const {
    if (!golden_) return std::nullopt;
    if (rows_ != golden_->extent(0)) return std::numeric_limits<double>::infinity();
    return largest_ > 0 ? error_ / largest_ : error_;
  }

 private:
  void compare(const float* ours, const float* golden, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double difference = std::abs(static_cast<double>(ours[i]) - static_cast<double>(golden[i]));
      largest_ = std::max(largest_, std::abs(static_cast<double>(golden[i])));
      error_ = difference <= error_ ? error_ : difference;  // a NaN stays
    }
  }

  const std::optional<Tensor>& golden_;
  std::int64_t first_;
  std::int64_t rows_ = 0;
  double largest_ = 0;
  double error_ = 0;
};

std::optional<bool> same_ids(const GoldenCase& one, const ModelText& text) {
  if (!text.tokenizer) return std::nullopt;
  if (one.prompt) return text.encode_raw(*one.prompt) == one.ids;
  if (one.messages.kind == Document::Kind::kNull || !text.chat) return std::nullopt;
  return text.encode_chat(one.messages) == one.ids;
}

Verified verify_case(const GoldenCase& one, const ModelText& text, EngineSession& engine) {
  LogitsCheck check(one);
  Verified result;
  result.name = one.name;
  result.prompt_tokens = one.ids.size();
  result.expected = one.greedy;
  result.same_ids = same_ids(one, text);
  const Answered answer = engine.ask({.prompt = one.ids,
                                      .answer_most = std::ssize(one.greedy),
                                      .sampling = {.temperature = 0},
                                      .logits = one.logits ? LogitsWanted::kAll : LogitsWanted::kNone},
                                     {.on_logits = [&](const LogitsMade& rows) { check.take(rows); }});
  for (const Sampled& token : answer.tokens) result.greedy.push_back(token.id);
  result.relative_error = check.relative_error();
  return result;
}

struct Verdict {
  std::vector<Verified> cases;
  double tolerance = kTolerance;
  double max_relative_error = 0;
  double greedy_agreement = 1;  // of all tokens, up to the first of each case that differs
  bool agrees = true;
};

Verdict judge(std::vector<Verified> cases, double tolerance) {
  Verdict verdict{.cases = std::move(cases), .tolerance = tolerance};
  std::size_t expected = 0;
  std::size_t agreeing = 0;
  for (const Verified& one : verdict.cases) {
    const double error = one.relative_error.value_or(0);
    if (!(error <= verdict.max_relative_error)) verdict.max_relative_error = error;
    expected += one.expected.size();
    agreeing += one.agreeing();
    verdict.agrees = verdict.agrees && one.agrees(tolerance);
  }
  if (expected > 0) verdict.greedy_agreement = static_cast<double>(agreeing) / static_cast<double>(expected);
  return verdict;
}

Document as_json(const VerifyArguments& a, const EngineReady& ready, const Verdict& verdict) {
  Document cases = Document::list();
  for (const Verified& one : verdict.cases) {
    Document row =
        Document::map({{"name", Document::string(one.name)}, {"prompt_tokens", to_document(one.prompt_tokens)}});
    if (one.relative_error) row.add("relative_error", Document::number(*one.relative_error));
    if (!one.expected.empty()) {
      row.add("greedy_tokens", to_document(one.expected.size()));
      row.add("greedy_agreement",
              Document::number(static_cast<double>(one.agreeing()) / static_cast<double>(one.expected.size())));
    }
    if (one.same_ids) row.add("prompt_ids_agree", Document::boolean(*one.same_ids));
    row.add("agrees", Document::boolean(one.agrees(verdict.tolerance)));
    cases.items.push_back(std::move(row));
  }
  return Document::map({{"model", Document::string(a.engine.model)},
                        {"ranks", to_document(ready.ranks)},
                        {"transport", Document::string(ready.transport)},
                        {"backend", Document::string(ready.backend)},
                        {"tolerance", Document::number(verdict.tolerance)},
                        {"cases", std::move(cases)},
                        {"max_relative_error", Document::number(verdict.max_relative_error)},
                        {"greedy_agreement", Document::number(verdict.greedy_agreement)},
                        {"agrees", Document::boolean(verdict.agrees)}});
}

std::string as_text(const EngineReady& ready, const Verdict& verdict) {
  Table table{.columns = {{.header = "case"},
                          {.header = "prompt", .align = TextAlign::kRight},
                          {.header = "largest error", .align = TextAlign::kRight},
                          {.header = "greedy tokens", .align = TextAlign::kRight},
                          {.header = "prompt ids"},
                          {.header = "verdict"}}};
  for (const Verified& one : verdict.cases) {
    table.rows.push_back({one.name, fmt::format("{}", one.prompt_tokens),
                          one.relative_error ? fmt::format("{:.1e}", *one.relative_error) : "-",
                          one.expected.empty() ? "-" : fmt::format("{} of {}", one.agreeing(), one.expected.size()),
                          one.same_ids ? (*one.same_ids ? "same" : "differ") : "-",
                          one.agrees(verdict.tolerance) ? "agrees" : "DIFFERS"});
  }
  return fmt::format("{}\n{}: largest relative error {:.1e} (at most {:.1e}), {:.1f}% of greedy tokens; {}\n",
                     render_text(table), verdict.agrees ? "agrees" : "DIFFERS", verdict.max_relative_error,
                     verdict.tolerance, 100 * verdict.greedy_agreement, describe(ready));
}

int run_verify(Session& session, const VerifyArguments& a) {
  const double tolerance = a.tolerance.value_or(kTolerance);
  if (tolerance < 0) throw Error(ErrorCode::kUsage, "--tolerance cannot be below 0", "1e-4 is usual");
  const EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const ModelText text = ModelText::load(a.engine.model, ModelText::Need::kNothing);
  const std::vector<GoldenCase> golden = load_golden(a.engine.model);
  EngineSession engine(session, spec);
  std::vector<Verified> results;
  for (const GoldenCase& one : golden) results.push_back(verify_case(one, text, engine));
  const Verdict verdict = judge(std::move(results), tolerance);
  if (session.json) {
    session.print_json(as_json(a, engine.ready(), verdict));
  } else {
    session.print(as_text(engine.ready(), verdict));
  }
  return verdict.agrees ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow verify_command() {
  return {.name = "verify",
          .summary = "is the engine right? Logits and tokens against another implementation's",
          .description =
              "Computes each case of golden.json in a model's folder and compares: logits with golden.safetensors (the "
              "largest difference relative to the largest logit of the case), the tokens that follow when always the "
              "likeliest is taken, and the ids of prompts and chats. Exit status 1 where something differs. "
              "docs/running.md tells the form of the files.",
          .examples = {{"yoke verify tests/golden/llama-f32", "on one rank"},
                       {"yoke verify models/nano --ranks 2 --json", "split over two; for a program"},
                       {"mpirun -np 2 yoke verify models/nano", "ranks that MPI starts, over MPI"}},
          .prepare = [](OptionTable& table) -> Action {
            auto a = std::make_shared<VerifyArguments>();
            table.value("--tolerance", "X", "the largest relative error of logits that is let pass (1e-4)",
                        a->tolerance);
            declare_engine(table, a->engine);
            return [a](Session& session) { return run_verify(session, *a); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke
