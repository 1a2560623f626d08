// yoke verify: the engine against what another implementation computed from the same model.
#include <fmt/format.h>

#include <set>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/chat/engine_session.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_options.h"
#include "yoke/engine/golden.h"
#include "yoke/engine/verify.h"
#include "yoke/report/table.h"
#include "yoke/serve/model_text.h"

namespace yoke::cli {
namespace {

struct VerifyArguments {
  EngineArguments engine;
  std::optional<double> tolerance;
  bool fast = false;
};

// A tokenizer or template that we cannot read says nothing about the engine: the ids then stay uncompared.
void compare_ids(const engine::GoldenCase& one, const serve::ModelText& text, engine::Verified& result) {
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

engine::Verified verify_case(const engine::GoldenCase& one, const serve::ModelText& text, chat::EngineSession& engine) {
  engine::LogitsCheck check(one);
  engine::Verified result;
  result.name = one.name;
  result.prompt_tokens = one.ids.size();
  result.expected = one.greedy;
  compare_ids(one, text, result);
  const auto answer = engine.try_ask({.prompt = one.ids,
                                      .answer_max = std::ssize(one.greedy),
                                      .sampling = {.temperature = 0},
                                      .logits = one.logits ? engine::LogitsWanted::kAll : engine::LogitsWanted::kNone},
                                     {.on_token =
                                          [&](const text::SampledToken& token) {
                                            result.greedy.push_back(token.id);
                                            return true;
                                          },
                                      .on_logits = [&](const engine::LogitsEvent& rows) { check.take(rows); }});
  if (answer) {
    result.relative_error = check.relative_error();
  } else {
    result.error = answer.error();
  }
  return result;
}

Document as_json(const VerifyArguments& a, const engine::EngineReady& ready, const engine::VerifyVerdict& verdict) {
  Document cases = Document::list();
  for (const engine::Verified& one : verdict.cases) {
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
std::string reasons(const engine::VerifyVerdict& verdict) {
  std::string text;
  std::set<std::string> reported;
  for (const engine::Verified& one : verdict.cases) {
    if (one.error) text += fmt::format("{}: {}\n", one.name, one.error->message());
    if (one.ids_note.empty() || !reported.insert(one.ids_note).second) continue;
    text += one.same_ids ? fmt::format("{}: {}\n", one.name, one.ids_note)
                         : fmt::format("prompt ids are not compared: {}\n", one.ids_note);
  }
  return text;
}

std::string as_text(const engine::EngineReady& ready, const engine::VerifyVerdict& verdict) {
  report::Table table{.columns = {{.header = "case"},
                                  {.header = "prompt", .align = report::TextAlign::kRight},
                                  {.header = "largest error", .align = report::TextAlign::kRight},
                                  {.header = "greedy tokens", .align = report::TextAlign::kRight},
                                  {.header = "prompt ids"},
                                  {.header = "verdict"}}};
  for (const engine::Verified& one : verdict.cases) {
    table.rows.push_back({one.name, fmt::format("{}", one.prompt_tokens),
                          one.relative_error ? fmt::format("{:.1e}", *one.relative_error) : "-",
                          one.expected.empty() ? "-" : fmt::format("{} of {}", one.agreeing(), one.expected.size()),
                          one.same_ids ? (*one.same_ids ? "same" : "differ") : "-",
                          !one.is_compared()              ? "not compared"
                          : one.agrees(verdict.tolerance) ? "agrees"
                                                          : "DIFFERS"});
  }
  std::string text = report::render_text(table) + "\n" + reasons(verdict);
  const std::string logits = verdict.max_relative_error ? fmt::format("largest relative error {:.1e} (at most {:.1e})",
                                                                      *verdict.max_relative_error, verdict.tolerance)
                                                        : "no logits compared";
  const std::string tokens = verdict.greedy_agreement
                                 ? fmt::format("{:.1f}% of greedy tokens", 100 * *verdict.greedy_agreement)
                                 : "no greedy tokens compared";
  return text +
         fmt::format("{}: {}, {}; {}\n", verdict.agrees ? "agrees" : "DIFFERS", logits, tokens, serve::describe(ready));
}

int run_verify(Session& session, VerifyArguments a) {
  settle_model(a.engine);
  a.engine.exact = !a.fast;
  const double tolerance = a.tolerance.value_or(engine::kVerifyTolerance);
  const serve::EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const serve::ModelText text = serve::ModelText::load(a.engine.model, serve::ModelText::Need::kNothing);
  const std::vector<engine::GoldenCase> golden = engine::load_golden(a.engine.model);
  chat::EngineSession engine(session, spec);
  std::vector<engine::Verified> results;
  for (const engine::GoldenCase& one : golden) results.push_back(verify_case(one, text, engine));
  const engine::VerifyVerdict verdict = engine::evaluate(std::move(results), tolerance);
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
              "Computes in f32, unless --fast is given. docs/running.md describes the files.",
          .examples = {{"yoke verify tests/golden/llama-f32", "on one rank"},
                       {"yoke verify models/nano --ranks 2 --json", "split over two; for a program"},
                       {"mpirun -np 2 yoke verify models/nano", "ranks that MPI starts, over MPI"}},
          .prepare = [](OptionTable& table) -> Action {
            auto a = std::make_shared<VerifyArguments>();
            table.value("--tolerance", "X", "the largest relative error of logits that is let pass (1e-4)",
                        a->tolerance, {.min = 0});
            table.flag("--fast", "compute as yoke run does, which rounds activations; without it as with --exact",
                       a->fast);
            declare_engine(table, a->engine);
            return [a](Session& session) { return run_verify(session, *a); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
