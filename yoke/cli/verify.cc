// yoke verify: the engine against what another implementation computed from the same model.
#include <fmt/format.h>

#include <set>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_session.h"
#include "yoke/engine/golden.h"
#include "yoke/engine/verify.h"
#include "yoke/report/table.h"
#include "yoke/serve/model_text.h"

namespace yoke {
namespace {

struct VerifyArguments {
  EngineArguments engine;
  std::optional<double> tolerance;
};

// A tokenizer or template that we cannot read says nothing about the engine: the ids then stay uncompared.
void compare_ids(const GoldenCase& one, const ModelText& text, Verified& result) {
  const bool is_chat = !one.prompt && one.messages.kind != Document::Kind::kNull;
  if (!one.prompt && !is_chat) return;
  try {
    result.same_ids = (is_chat ? text.encode_chat(one.messages) : text.encode_raw(*one.prompt)) == one.ids;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    const bool unread = !text.tokenizer || (is_chat && !text.chat) || error.code() == ErrorCode::kUnsupported;
    if (!unread) result.same_ids = false;
    if (error.code() != ErrorCode::kNotFound) result.ids_note = error.message();
  }
}

Verified verify_case(const GoldenCase& one, const ModelText& text, EngineSession& engine) {
  LogitsCheck check(one);
  Verified result;
  result.name = one.name;
  result.prompt_tokens = one.ids.size();
  result.expected = one.greedy;
  compare_ids(one, text, result);
  const auto answer = engine.try_ask({.prompt = one.ids,
                                      .answer_most = std::ssize(one.greedy),
                                      .sampling = {.temperature = 0},
                                      .logits = one.logits ? LogitsWanted::kAll : LogitsWanted::kNone},
                                     {.on_token =
                                          [&](const Sampled& token) {
                                            result.greedy.push_back(token.id);
                                            return true;
                                          },
                                      .on_logits = [&](const LogitsMade& rows) { check.take(rows); }});
  if (answer) {
    result.relative_error = check.relative_error();
  } else {
    result.error = answer.error();
  }
  return result;
}

Document as_json(const VerifyArguments& a, const EngineReady& ready, const VerifyVerdict& verdict) {
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
    if (!one.ids_note.empty()) row.add("prompt_ids_note", Document::string(one.ids_note));
    if (one.error) row.add("error", error_json(*one.error, one.error->exit_status()));
    row.add("agrees", Document::boolean(one.agrees(verdict.tolerance)));
    cases.items.push_back(std::move(row));
  }
  const auto number_or_null = [](const std::optional<double>& number) {
    return number ? Document::number(*number) : Document::null();
  };
  return Document::map({{"model", Document::string(a.engine.model)},
                        {"ranks", to_document(ready.ranks)},
                        {"transport", Document::string(ready.transport)},
                        {"backend", Document::string(ready.backend)},
                        {"tolerance", Document::number(verdict.tolerance)},
                        {"cases", std::move(cases)},
                        {"max_relative_error", number_or_null(verdict.max_relative_error)},
                        {"greedy_agreement", number_or_null(verdict.greedy_agreement)},
                        {"agrees", Document::boolean(verdict.agrees)}});
}

// Why cases have no answer, and why ids were not compared: the latter once for all cases of the same reason.
std::string reasons(const VerifyVerdict& verdict) {
  std::string text;
  std::set<std::string> told;
  for (const Verified& one : verdict.cases) {
    if (one.error) text += fmt::format("{}: {}\n", one.name, one.error->message());
    if (one.ids_note.empty() || !told.insert(one.ids_note).second) continue;
    text += one.same_ids ? fmt::format("{}: {}\n", one.name, one.ids_note)
                         : fmt::format("prompt ids are not compared: {}\n", one.ids_note);
  }
  return text;
}

std::string as_text(const EngineReady& ready, const VerifyVerdict& verdict) {
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
                          !one.is_compared()              ? "not compared"
                          : one.agrees(verdict.tolerance) ? "agrees"
                                                          : "DIFFERS"});
  }
  std::string text = render_text(table) + "\n" + reasons(verdict);
  const std::string logits = verdict.max_relative_error ? fmt::format("largest relative error {:.1e} (at most {:.1e})",
                                                                      *verdict.max_relative_error, verdict.tolerance)
                                                        : "no logits compared";
  const std::string tokens = verdict.greedy_agreement
                                 ? fmt::format("{:.1f}% of greedy tokens", 100 * *verdict.greedy_agreement)
                                 : "no greedy tokens compared";
  return text + fmt::format("{}: {}, {}; {}\n", verdict.agrees ? "agrees" : "DIFFERS", logits, tokens, describe(ready));
}

int run_verify(Session& session, const VerifyArguments& a) {
  const double tolerance = a.tolerance.value_or(kVerifyTolerance);
  const EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const ModelText text = ModelText::load(a.engine.model, ModelText::Need::kNothing);
  const std::vector<GoldenCase> golden = load_golden(a.engine.model);
  EngineSession engine(session, spec);
  std::vector<Verified> results;
  for (const GoldenCase& one : golden) results.push_back(verify_case(one, text, engine));
  const VerifyVerdict verdict = judge(std::move(results), tolerance);
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
          .summary = "compare logits and tokens with a reference implementation",
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
                        a->tolerance, {.least = 0});
            declare_engine(table, a->engine);
            return [a](Session& session) { return run_verify(session, *a); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke
