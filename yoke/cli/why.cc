// yoke why: "why am I slow?", for a run or a benchmark of the history, or an engine that runs now.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/bench/history.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/watch_input.h"
#include "yoke/predict/why_question.h"
#include "yoke/watch/engine_sums.h"
#include "yoke/why/evaluate_rows.h"

namespace yoke::cli {
namespace {

using namespace literals;

constexpr int kRunsLookedAt = 200;  // of the history
constexpr std::size_t kMaxHealthy = 20;
constexpr double kAlike = 2;  // lengths of prompts and answers that may be compared

constexpr Seconds kReachTime{5};  // until nodes have sent their first samples

struct WhyEngineAsked {
  WatchInput input;
  Seconds time{10};
  std::string model;   // for the plan; empty: as the engine calls it
  std::string format;  // of its weights; empty: as the model's files or name say
};

struct WhyArguments {
  std::string run;
  WhyEngineAsked engine;
  bool is_engine = false;
};

double number_of(const Document& settings, std::string_view key) {
  const Document* const found = settings.find(key);
  const auto value = found != nullptr ? try_to([&] { return from_json<double>(*found); }) : Result<double>(0.0);
  return value ? *value : 0;
}
std::string text_of(const Document& settings, std::string_view key) {
  const Document* const found = settings.find(key);
  return found != nullptr ? found->text : "";
}

// "direct", "mpi", without addresses and tuned sizes.
std::string transport_kind(const Document& settings) {
  const std::string text = text_of(settings, "transport");
  return text.substr(0, text.find(':'));
}

bool is_alike(const bench::RunRecord& a, const bench::RunRecord& b) {
  if (a.benchmark != b.benchmark || a.host != b.host || a.processor != b.processor) return false;
  const Document x = parse_json(a.settings, "settings"), y = parse_json(b.settings, "settings");
  for (const char* key : {"model", "ranks", "backend", "folder", "shape", "format", "layers", "batch", "threads"}) {
    if (text_of(x, key) != text_of(y, key)) return false;
  }
  for (const char* key : {"prompt_tokens", "answer_tokens", "prompt", "context"}) {
    const double p = number_of(x, key) + 1, q = number_of(y, key) + 1;
    if (p > kAlike * q || q > kAlike * p) return false;
  }
  return transport_kind(x) == transport_kind(y);
}

std::optional<why::RunQuestion> question_in(const bench::RunRecord& record) {
  const auto settings = try_to([&] { return parse_json(record.settings, "settings"); });
  if (!settings) return std::nullopt;
  const Document* const kept = settings->find(bench::kAccountKey);
  if (kept == nullptr) return std::nullopt;
  const auto question = try_to([&] { return from_json<why::RunQuestion>(*kept); });
  if (!question || question->account.ranks.empty()) return std::nullopt;
  return *question;
}

std::string subject_of(const bench::RunRecord& record) {
  std::string time = record.time.substr(0, 16);
  std::replace(time.begin(), time.end(), 'T', ' ');
  return fmt::format("{} {}, {}: {}", record.benchmark == "run" ? "Run" : record.benchmark, record.id, time,
                     record.summary);
}

// Earlier runs of the same kind in which nothing was off, and during which the processors were free.
std::vector<spec::StepAccount> healthy_before(const std::vector<bench::RunRecord>& records,
                                              const bench::RunRecord& record) {
  std::vector<spec::StepAccount> healthy;
  for (const bench::RunRecord& other : records) {
    if (other.id >= record.id || healthy.size() >= kMaxHealthy || !is_alike(other, record)) continue;
    const auto question = question_in(other);
    if (!question || why::is_disturbed(question->account)) continue;
    if (why::evaluate_run(*question).blames.empty()) healthy.push_back(question->account);
  }
  return healthy;
}

why::Answer evaluate_rows(const std::vector<bench::RunRecord>& records, const bench::RunRecord& record,
                          const Session& session) {
  why::BenchQuestion question{.subject = subject_of(record), .benchmark = record.benchmark, .rows = {}};
  const Document settings = parse_json(record.settings, "settings");
  question.verdict = text_of(settings, "verdict");
  question.options = session_options(session);
  for (const bench::RecordRow& row : record.rows) {
    why::BenchRow judged{.name = row.name + (row.size > 0 ? fmt::format(", {} bytes", row.size) : std::string()),
                         .unit = row.unit,
                         .value = row.value,
                         .low = row.low,
                         .high = row.high,
                         .predicted = row.predicted};
    for (const bench::RunRecord& other : records) {
      if (other.id >= record.id || !is_alike(other, record)) continue;
      for (const bench::RecordRow& same : other.rows) {
        if (same.name == row.name && same.size == row.size && same.unit == row.unit)
          judged.before.push_back(same.value);
      }
    }
    question.rows.push_back(std::move(judged));
  }
  return why::evaluate_bench(question);
}

why::Answer evaluate_record(const Session& session, const std::string& name) {
  const bench::History history(bench::history_file());
  if (history.set_aside()) log(LogLevel::kWarning, "{}", *history.set_aside());
  const std::vector<bench::RunRecord> records = history.recent(kRunsLookedAt);
  if (records.empty()) {
    throw Error(ErrorCode::kNotFound, "nothing was run or measured yet",
                "such as: yoke run -p 'Which cable joins two units?' -n 200");
  }
  const bench::RunRecord record = history.find(name);
  auto question = question_in(record);
  if (!question) return evaluate_rows(records, record, session);
  question->subject = subject_of(record);
  if (const std::string given = session_options(session); !given.empty()) question->options = given;
  question->healthy = healthy_before(records, record);
  return why::evaluate_run(*question);
}

// An engine that is watched for a while, gathered for its judge. Error(kNotFound) where no engine answers.
why::EngineQuestion watch_engine(const Session& session, const WhyEngineAsked& asked) {
  OpenedWatch opened = open_watch(session, asked.input);
  watch::Board board(opened.plan);
  watch::EngineSums sums;
  Deadline deadline = Deadline::after(std::min(asked.input.reach_limit(), asked.time + kReachTime));
  bool has_begun = false;
  while (!opened.source->at_end() && !deadline.expired()) {
    throw_if_interrupted();
    const auto observation = opened.source->next(Deadline::after(0.1_s));
    if (!observation) continue;
    board.take(*observation);
    sums.take(board, observation->node);
    if (!has_begun && sums.has_engine() && !asked.input.replay) {
      has_begun = true;
      deadline = Deadline::after(asked.time);
    }
    if (asked.input.replay) deadline = Deadline::after(asked.time);
  }
  if (!sums.has_engine()) {
    throw Error(ErrorCode::kNotFound, "no engine answers /metrics on these nodes",
                "start one ('yoke serve', 'yoke launch'), or give its port with --engine-port");
  }
  why::EngineQuestion question = sums.question();
  question.options = session_options(session);
  question.subject =
      fmt::format("{}{} watched for {:.0f} s: {:.3g} tokens/s, {:.1f} requests at once", question.engine.kind,
                  question.engine.model.empty() ? "" : " with " + question.engine.model, question.engine.seconds,
                  question.engine.tokens_per_second, question.engine.running.value_or(0));
  if (const auto planned = try_to([&] {
        return predict::plan_engine(
            {.model = asked.model,
             .format = asked.format,
             .cluster = find_cluster_file(session) ? read_session_cluster(session) : std::nullopt},
            question.engine);
      })) {
    if (planned->rate > 0 && planned->low > 0) question.planned = *planned;
  } else if (!asked.model.empty()) {
    throw Error(planned.error());
  }
  return question;
}

int print_why(Session& session, const WhyArguments& a) {
  if (a.is_engine && !a.run.empty()) {
    throw Error(ErrorCode::kUsage, "give a run or --engine, not both", "each is something that may be slow");
  }
  const why::Answer answer = a.is_engine || a.engine.input.replay
                                 ? why::evaluate_engine(watch_engine(session, a.engine))
                                 : evaluate_record(session, a.run.empty() ? "last" : a.run);
  if (session.json) {
    session.print_json(why::to_json(answer));
  } else {
    session.print(why::answer_text(answer));
  }
  return answer.blames.empty() ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow why_command() {
  return {
      .name = "why",
      .summary = "why a run, a benchmark or an engine is slow: the part of the plan that is off",
      .description =
          "Puts what the steps of a run were made of (reading weights, reading the cache, fixed cost, all-reduce, "
          "waiting, prompts) beside what the plan and earlier healthy runs expect, and names what is off, with the "
          "evidence and the next command. If nothing is off it says which limit the machine is at.\n\n"
          "Without arguments it explains the newest run of the history. --engine watches an engine that runs now on "
          "the cluster's nodes (yoke serve, vLLM, SGLang, llama-server) by its /metrics, the port counters and the "
          "GPUs. See docs/why.md.\n\nExit status: 0 nothing is off, 1 something is.",
      .examples = {{"yoke why", "the newest run or benchmark"},
                   {"yoke why last-1", "the one before"},
                   {"yoke why --engine --model llama-3.1-8b", "what an engine does in the next ten seconds"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<WhyArguments>();
        table.positional("RUN", "a number of 'yoke bench history', or last, last-1 … (last)", a->run,
                         Presence::kOptional);
        table.flag("--engine", "watch the engine that runs now", a->is_engine);
        table.value("--for", "TIME", "how long it is watched (10s)", a->engine.time, {1, 3600});
        table.value("--model", "MODEL", "of the engine, as 'yoke plan' takes it (as the engine calls it)",
                    a->engine.model);
        table.value("--format", "FORMAT", "of its weights, as 'yoke plan' takes it", a->engine.format);
        declare_watch_input(table, a->engine.input);
        return [a](Session& session) { return print_why(session, *a); };
      }};
}

}  // namespace yoke::cli
