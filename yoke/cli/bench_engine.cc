// yoke bench engine: many requests on one engine, and what a step costs beside the model.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/bench/history.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_options.h"
#include "yoke/engine/host_time.h"
#include "yoke/serve/client.h"
#include "yoke/serve/engine_load.h"

namespace yoke::cli {
namespace {

struct LoadArguments {
  EngineArguments engine;
  int requests = 6;
  int prompt = 16;
  int tokens = 32;
  int prefix = 0;
  int long_prompt = 0;
  bool no_history = false;
};

constexpr int kAnswersBesidePrompt = 3;

struct HostTime {
  int rows = 1;
  Seconds time;
};

struct LoadResult {
  engine::EngineReady ready;
  Seconds load_time;
  serve::LoadRow alone, together;
  std::optional<serve::PrefixTimes> prefix;
  std::optional<serve::FairnessTimes> fairness;
  double embeddings = 0;  // a second, of texts as long as the prompts
  std::vector<HostTime> host;

  double gain() const { return alone.rate() > 0 ? together.rate() / alone.rate() : 0; }
};

void check_same(const serve::LoadRow& alone, const serve::LoadRow& together) {
  for (const auto& [id, tokens] : alone.answers) {
    const auto other = together.answers.find(id);
    if (other != together.answers.end() && other->second == tokens) continue;
    throw Error(ErrorCode::kInternal, fmt::format("request {} got other tokens in company than alone", id),
                "please report this, with the model and this command");
  }
}

LoadResult measure(Session& session, const LoadArguments& a, serve::EngineHostSpec spec) {
  LoadResult result;
  for (const int rows : {1, 64}) result.host.push_back({rows, engine::measure_host_time(rows, 2)});
  spec.on_notice = [&](const std::string& text) { session.warn({text}); };
  const Instant start = real_clock().now();
  serve::EngineHost host(std::move(spec));
  serve::EngineLoad load(host);
  result.load_time = to_seconds(real_clock().now() - start);
  result.ready = load.ready();
  serve::RandomRequests wanted{
      .count = a.requests, .prompt = a.prompt, .answer = a.tokens, .vocabulary = result.ready.vocabulary, .salt = 1};
  result.together = load.at_once(serve::random_requests(wanted));
  wanted.salt = 2;
  result.alone = load.one_by_one(serve::random_requests(wanted));
  check_same(result.alone, result.together);
  wanted.salt = 3;
  wanted.answer = 0;
  std::vector<engine::Request> texts = serve::random_requests(wanted);
  for (engine::Request& text : texts) text.logits = engine::LogitsWanted::kStates;
  const serve::LoadRow embedded = load.at_once(texts);
  result.embeddings = embedded.time.value > 0 ? static_cast<double>(texts.size()) / embedded.time.value : 0;
  if (a.prefix > 0) result.prefix = serve::measure_prefix(load, a.prefix);
  if (a.long_prompt > 0) result.fairness = load.beside_prompt(a.long_prompt, kAnswersBesidePrompt);
  return result;
}

Document to_json(const serve::LoadRow& row) {
  return Document::map({{"at_once", Document::number(std::int64_t{row.at_once})},
                        {"tokens", Document::number(row.tokens)},
                        {"tokens_per_second", Document::number(row.rate())},
                        {"first_token_ms", Document::number(row.first_token.value * 1e3)},
                        {"token_ms", Document::number(row.token.value * 1e3)}});
}

Document as_json(const LoadArguments& a, const LoadResult& result) {
  Document out = Document::map({{"model", Document::string(a.engine.model)},
                                {"ranks", Document::number(std::int64_t{result.ready.ranks})},
                                {"transport", Document::string(result.ready.transport)},
                                {"backend", Document::string(result.ready.backend)},
                                {"load_seconds", Document::number(result.load_time.value)}});
  out.add("requests", Document::list({to_json(result.alone), to_json(result.together)}));
  out.add("gain", Document::number(result.gain()));
  out.add("embeddings_per_second", Document::number(result.embeddings));
  if (result.prefix) {
    out.add("prefix", Document::map({{"tokens", Document::number(result.prefix->tokens)},
                                     {"cold_ms", Document::number(result.prefix->cold.value * 1e3)},
                                     {"warm_ms", Document::number(result.prefix->warm.value * 1e3)}}));
  }
  if (result.fairness) {
    out.add("long_prompt", Document::map({{"tokens", Document::number(result.fairness->tokens)},
                                          {"answers", Document::number(std::int64_t{result.fairness->answers})},
                                          {"reading_ms", Document::number(result.fairness->reading.value * 1e3)},
                                          {"token_before_ms", Document::number(result.fairness->before.value * 1e3)},
                                          {"token_during_ms", Document::number(result.fairness->during.value * 1e3)}}));
  }
  Document host = Document::list({});
  for (const HostTime& one : result.host) {
    host.items.push_back(Document::map(
        {{"rows", Document::number(std::int64_t{one.rows})}, {"ms", Document::number(one.time.value * 1e3)}}));
  }
  out.add("host_time", std::move(host));
  return out;
}

std::string as_text(const LoadResult& result) {
  std::string out = fmt::format("{}, backend {}\n\n", serve::describe(result.ready), result.ready.backend);
  out += fmt::format("{:>10} {:>12} {:>18} {:>14}\n", "at once", "tokens/s", "first token (ms)", "per token (ms)");
  for (const serve::LoadRow& row : {result.alone, result.together}) {
    out += fmt::format("{:>10} {:>12.3g} {:>18.3g} {:>14.3g}\n", row.at_once, row.rate(), row.first_token.value * 1e3,
                       row.token.value * 1e3);
  }
  out += fmt::format("\n{} at once get {:.2f} times the tokens per second of one; all answers are the same tokens.\n",
                     result.together.at_once, result.gain());
  if (result.prefix) {
    out += fmt::format(
        "A prompt of {} tokens: first token after {:.3g} ms; with its beginning known {:.3g} ms ({:.1f}%).\n",
        result.prefix->tokens, result.prefix->cold.value * 1e3, result.prefix->warm.value * 1e3,
        100 * result.prefix->warm.value / result.prefix->cold.value);
  }
  if (result.fairness) {
    out += fmt::format(
        "{} answers take {:.3g} ms per token; while a prompt of {} tokens is read (for {:.3g} s) {:.3g} ms ({:.2f} "
        "times).\n",
        result.fairness->answers, result.fairness->before.value * 1e3, result.fairness->tokens,
        result.fairness->reading.value, result.fairness->during.value * 1e3,
        result.fairness->during.value / result.fairness->before.value);
  }
  out += fmt::format("Embeddings of texts as long as the prompts: {:.3g} a second.\n", result.embeddings);
  for (const HostTime& one : result.host) {
    out += fmt::format("A step of {} {} costs {:.3f} ms beside the model (plan, sharing, results; 2 ranks).\n",
                       one.rows, one.rows == 1 ? "row" : "rows", one.time.value * 1e3);
  }
  return out;
}

bench::RunRecord record_of(const LoadArguments& a, const LoadResult& result) {
  bench::RunRecord record =
      bench::new_record("engine", Document::map({{"model", Document::string(a.engine.model)},
                                                 {"ranks", Document::number(std::int64_t{result.ready.ranks})},
                                                 {"transport", Document::string(result.ready.transport)},
                                                 {"backend", Document::string(result.ready.backend)},
                                                 {"prompt_tokens", Document::number(std::int64_t{a.prompt})},
                                                 {"answer_tokens", Document::number(std::int64_t{a.tokens})}}));
  for (const serve::LoadRow& row : {result.alone, result.together}) {
    record.rows.push_back({.name = fmt::format("{} at once", row.at_once),
                           .size = 0,
                           .value = row.rate(),
                           .low = row.rate(),
                           .high = row.rate(),
                           .unit = "tok/s"});
  }
  record.rows.push_back({.name = fmt::format("embeddings of {} tokens", a.prompt),
                         .size = 0,
                         .value = result.embeddings,
                         .low = result.embeddings,
                         .high = result.embeddings,
                         .unit = "/s"});
  record.summary = fmt::format("{} ranks: {:.3g} tok/s alone, {:.3g} with {} requests at once", result.ready.ranks,
                               result.alone.rate(), result.together.rate(), result.together.at_once);
  return record;
}

int run_bench(Session& session, LoadArguments a) {
  settle_model(a.engine);
  const serve::EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const LoadResult result = measure(session, a, spec);
  if (session.json) {
    session.print_json(as_json(a, result));
  } else {
    session.print(as_text(result));
  }
  if (!a.no_history) session.warn(bench::keep_record(record_of(a, result)));
  return kExitOk;
}

}  // namespace

CommandRow bench_engine_command() {
  return {.name = "engine",
          .summary = "many requests on one engine: tokens per second, first token, host time",
          .description =
              "Starts an engine as 'yoke run' does and asks it random prompts all at once, then the same ones one by "
              "one. Prints tokens per second, the median time to the first token and between tokens, and what a step "
              "costs beside the model. Every answer must be the same tokens in company as alone; otherwise the "
              "command fails. --prefix N also measures how much sooner a prompt starts whose first N tokens were read "
              "before, --long-prompt N how much longer a token of other answers takes while N tokens are read.",
          .examples = {{"yoke bench engine", "six requests on the model that ships with yoke"},
                       {"yoke bench engine models/nano --ranks 3 --requests 6 --json", "three stages, for a program"},
                       {"yoke bench engine --prefix 900", "with a shared beginning of 900 tokens"},
                       {"yoke bench engine --long-prompt 900", "what a prompt of 900 tokens does to other answers"}},
          .prepare = [](OptionTable& table) -> Action {
            auto a = std::make_shared<LoadArguments>();
            table.value("--requests", "N", "how many at once (6)", a->requests, {1, 1024});
            table.value("--prompt-tokens", "N", "of each request (16)", a->prompt, {1, 1 << 20});
            table.value("-n,--tokens", "N", "of each answer (32)", a->tokens, {1, 1 << 20});
            table.value("--prefix", "N", "also measure a beginning of N tokens that two prompts share (0: no)",
                        a->prefix, {0, 1 << 20});
            table.value("--long-prompt", "N",
                        "also measure what a prompt of N tokens does to answers under way (0: no)", a->long_prompt,
                        {0, 1 << 20});
            declare_engine(table, a->engine, Presence::kOptional);
            table.flag("--no-history", "do not keep this run in the history", a->no_history);
            return [a](Session& session) { return run_bench(session, *a); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
