// yoke run: one prompt, one answer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <iterator>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/bench/history.h"
#include "yoke/bench/trace_file.h"
#include "yoke/chat/engine_session.h"
#include "yoke/chat/sampling_arguments.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_options.h"
#include "yoke/plan/plan_text.h"
#include "yoke/predict/predicted.h"
#include "yoke/predict/why_question.h"
#include "yoke/report/word_flow.h"
#include "yoke/serve/answer_text.h"
#include "yoke/terminal/typed_input.h"
#include "yoke/weights/writer.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMaxPrompt{64 << 20};
constexpr Seconds kAccountLimit{3};  // until the ranks have told what their steps were made of
constexpr Seconds kTraceTime{60};    // a trace of hours has some MB for each rank

struct RunArguments {
  EngineArguments engine;
  chat::SamplingArguments sampling;
  std::optional<std::string> prompt, ids, system;
  fs::path logits, trace;
  bool chat = false, raw = false, no_history = false, why = false;
};

void check_arguments(const Session& session, const RunArguments& a) {
  const auto refuse = [](bool wrong, const char* message, const char* hint) {
    if (wrong) throw Error(ErrorCode::kUsage, message, hint);
  };
  refuse(a.prompt && a.ids, "give -p or --ids, not both", "each is a prompt");
  refuse(a.chat && a.raw, "--chat and --raw contradict each other", "give one of them, or neither");
  refuse(a.raw && a.system, "--system needs the chat template, which --raw leaves out", "write it into the text");
  refuse(a.ids && (a.chat || a.raw || a.system), "--ids are taken as they are: no --chat, --raw or --system",
         "give a text with -p instead");
  refuse(a.sampling.logprobs.has_value() && !session.json, "--logprobs are only printed in JSON", "add --json");
  if (!a.logits.empty() && fs::exists(a.logits)) {
    throw Error(ErrorCode::kConflict, fmt::format("'{}' exists already", a.logits.native()),
                "name another file for --logits, or remove it");
  }
  if (!a.logits.empty() && !fs::is_directory(fs::absolute(a.logits).parent_path())) {
    throw Error(ErrorCode::kNotFound, fmt::format("--logits: the folder of '{}' does not exist", a.logits.native()),
                "make the folder first");
  }
  bench::check_trace_file(a.trace);
}

std::string read_prompt() {
  if (isatty(STDIN_FILENO) != 0) {
    throw Error(ErrorCode::kUsage, "there is no prompt", "give one with -p TEXT, or through standard input");
  }
  std::string text = terminal::read_standard_input(kMaxPrompt);
  // What a shell's echo or an editor ends a text with is no part of it.
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<text::TokenId> parse_ids(const std::string& text) {
  std::vector<text::TokenId> ids;
  for (const std::string& word : split(text, ',')) {
    const std::string_view digits = trim(word);
    text::TokenId id = 0;
    const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (failure != std::errc{} || rest != digits.data() + digits.size() || id < 0) {
      throw Error(ErrorCode::kUsage, fmt::format("--ids: '{}' is no token id", printable(word, 40)),
                  "give whole numbers from 0, separated by commas: 1,15043,3186");
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<text::TokenId> prompt_ids(const RunArguments& a, const serve::ModelText& text) {
  if (a.ids) return parse_ids(*a.ids);
  const std::string prompt = a.prompt ? *a.prompt : read_prompt();
  if (prompt.empty()) {
    throw Error(ErrorCode::kInvalid, "the prompt is empty",
                "give one, such as: yoke run -p 'Which cable joins two units?'");
  }
  if (a.raw) return text.encode_raw(prompt);
  if (!text.chat) {
    const Error& why = text.chat.error();
    if (why.code() != ErrorCode::kNotFound) {
      throw Error(why.code(), why.message(), "--raw gives the text as it is, without the chat template");
    }
    if (!a.chat && !a.system) return text.encode_raw(prompt);
    throw Error(ErrorCode::kNotFound, fmt::format("'{}' has no chat template", a.engine.model),
                "leave --chat and --system out: the text is then taken as it is");
  }
  serve::check_utf8(prompt, "the prompt");
  Document messages = Document::list();
  if (a.system) {
    serve::check_utf8(*a.system, "--system");
    messages.items.push_back(serve::chat_message("system", *a.system));
  }
  messages.items.push_back(serve::chat_message("user", prompt));
  return text.encode_chat(messages);
}

// The prompt's logits, written as they come; the file is there when all have come.
class LogitsFile {
 public:
  LogitsFile(const fs::path& file, std::int64_t tokens, std::int64_t vocabulary) : missing_(tokens) {
    if (!file.empty())
      writer_.emplace(file,
                      std::vector<weights::TensorDeclaration>{{"logits", tensor::DType::kF32, {tokens, vocabulary}}});
  }
  void take(const engine::LogitsEvent& logits) {
    missing_ -= logits.rows.extent(0);
    if (writer_) writer_->append(std::as_bytes(logits.rows.span<float>()));
  }
  void finish() {
    if (!writer_) return;
    if (missing_ != 0) {
      throw Error(ErrorCode::kInternal, fmt::format("the logits of {} tokens did not come", missing_),
                  "please report this");
    }
    writer_->finish();
  }

 private:
  std::int64_t missing_;  // tokens whose logits have not come
  std::optional<weights::SafetensorsWriter> writer_;
};

Document logprobs_json(const serve::CompletedAnswer& answer) {
  Document list = Document::list();
  const auto entry = [](text::TokenId id, float logprob) {
    return Document::map({{"id", Document::number(std::int64_t{id})}, {"logprob", Document::number(double{logprob})}});
  };
  for (const text::SampledToken& token : answer.tokens) {
    Document one = entry(token.id, token.logprob);
    Document top = Document::list();
    for (const text::TokenLogprob& other : token.top) top.items.push_back(entry(other.id, other.logprob));
    one.add("top", std::move(top));
    list.items.push_back(std::move(one));
  }
  return list;
}

Document recoveries_json(chat::EngineSession& engine) {
  Document list = Document::list();
  for (const engine::EngineRecovered& one : engine.client().recoveries()) {
    list.items.push_back(
        Document::map({{"seconds", Document::number(one.after.value)}, {"cause", Document::string(one.cause)}}));
  }
  return list;
}

Document as_json(const RunArguments& a, chat::EngineSession& engine, const engine::Request& request,
                 const serve::CompletedAnswer& answer, const std::string& text) {
  const engine::EngineReady& ready = engine.ready();
  std::vector<text::TokenId> tokens;
  for (const text::SampledToken& token : answer.tokens) tokens.push_back(token.id);
  const std::size_t prompt_tokens = request.prompt.size();
  Document out =
      Document::map({{"model", Document::string(a.engine.model)},
                     {"ranks", Document::number(std::int64_t{ready.ranks})},
                     {"nodes", to_document(ready.nodes)},
                     {"transport", Document::string(ready.transport)},
                     {"backend", Document::string(ready.backend)},
                     {"prompt_tokens", Document::number(static_cast<std::int64_t>(prompt_tokens))},
                     {"tokens", to_document(tokens)},
                     {"text", Document::string(text)},
                     {"finish", to_document(answer.finish)},
                     {"seed", Document::string(fmt::format("{}", request.sampling.seed))},
                     {"seconds", Document::map({{"load", Document::number(engine.client().load_time().value)},
                                                {"prefill", Document::number(answer.prefill.value)},
                                                {"decode", Document::number(answer.decode.value)}})},
                     {"prefill_tokens_per_second", Document::number(answer.prefill_rate(prompt_tokens))},
                     {"decode_tokens_per_second", Document::number(answer.decode_rate())},
                     {"context", Document::number(ready.context_max)},
                     {"weights_bytes_each", to_document(ready.weights_each)},
                     {"cache_bytes_each", to_document(ready.cache_each)},
                     {"recoveries", recoveries_json(engine)}});
  if (request.sampling.logprobs) out.add("logprobs", logprobs_json(answer));
  return out;
}

std::string summary(chat::EngineSession& engine, const engine::Request& request, const serve::CompletedAnswer& answer) {
  const std::size_t recoveries = engine.client().recoveries().size();
  return fmt::format(
      "prompt: {} tokens, {:.1f}/s; answer: {} tokens, {:.1f}/s; {}{}", request.prompt.size(),
      answer.prefill_rate(request.prompt.size()), answer.tokens.size(), answer.decode_rate(),
      serve::describe(engine.ready()),
      recoveries > 0 ? fmt::format("; {} {}", recoveries, recoveries == 1 ? "recovery" : "recoveries") : std::string());
}

predict::RunAsked asked_of(const serve::EngineHostSpec& spec, const engine::Request& request,
                           const serve::CompletedAnswer& answer) {
  const bool is_local = spec.transport == rank::Transport::kThreads || spec.place.has_value();
  return {.engine = spec.engine,
          .cluster = is_local ? std::nullopt : spec.cluster,
          .prompt_tokens = request.prompt.size(),
          .answer_tokens = answer.tokens.size()};
}

bench::RunRecord record_of(const RunArguments& a, const engine::EngineReady& ready, const engine::Request& request,
                           const serve::CompletedAnswer& answer,
                           const std::optional<predict::PredictedRun>& predicted) {
  bench::RunRecord record = bench::new_record(
      "run", Document::map({{"model", Document::string(a.engine.model)},
                            {"ranks", Document::number(std::int64_t{ready.ranks})},
                            {"backend", Document::string(ready.backend)},
                            {"transport", Document::string(ready.transport)},
                            {"prompt_tokens", Document::number(static_cast<std::int64_t>(request.prompt.size()))},
                            {"answer_tokens", Document::number(static_cast<std::int64_t>(answer.tokens.size()))}}));
  const auto add = [&](std::string name, double value, const predict::PredictedRate* rate) {
    record.rows.push_back(
        {.name = std::move(name), .size = 0, .value = value, .low = value, .high = value, .unit = "tok/s"});
    if (rate != nullptr) record.rows.back().predicted = rate->value;
  };
  add("prefill", answer.prefill_rate(request.prompt.size()), predicted ? &predicted->prefill : nullptr);
  add("decode", answer.decode_rate(), predicted ? &predicted->decode : nullptr);
  record.summary = fmt::format("{}, {} rank{}: {} tok/s", fs::path(a.engine.model).filename().native(), ready.ranks,
                               ready.ranks == 1 ? "" : "s", plan::short_number(answer.decode_rate()));
  if (predicted) record.summary += fmt::format(" ({} predicted)", plan::short_number(predicted->decode.value));
  return record;
}

int run_prompt(Session& session, RunArguments a) {
  check_arguments(session, a);
  settle_model(a.engine);
  serve::EngineHostSpec spec = host_spec(session, a.engine);
  spec.engine.trace = !a.trace.empty();
  if (const auto status = follow_if_not_first(spec)) return *status;
  const serve::ModelText text = serve::ModelText::load(
      a.engine.model, a.ids ? serve::ModelText::Need::kNothing : serve::ModelText::Need::kTokenizer);
  if (!text.tokenizer && !a.sampling.stops.empty()) {
    throw Error(ErrorCode::kUsage, "--stop needs a tokenizer: " + text.tokenizer.error().message(), "leave it out");
  }
  engine::Request request;
  request.prompt = prompt_ids(a, text);
  request.answer_max = chat::answer_max_of(a.sampling, text);
  request.stop_ids = text.stop_ids;
  request.sampling = chat::sampling_of(a.sampling, text);
  if (!a.logits.empty()) request.logits = engine::LogitsWanted::kAll;
  serve::AnswerText words(text, a.sampling.stops);
  const engine::SchedulerLimits limits = engine::request_limits(spec.engine);
  engine::check_request(request, limits);
  LogitsFile logits(a.logits, std::ssize(request.prompt), limits.vocabulary);
  chat::EngineSession engine(session, spec);
  if (const std::string note = chat::context_note(engine.ready());
      !note.empty() && !a.engine.context && !session.quiet) {
    engine.note(note);
  }
  if (!text.tokenizer && !session.quiet) {
    engine.note(text.tokenizer.error().message() + ": the answer is printed as ids");
  }
  std::optional<report::WordFlow> flow;
  // A launcher passes the text on: it decides about lines, not the terminal that it made for us.
  if (const auto columns = terminal_columns(STDOUT_FILENO); columns && !spec.place) flow.emplace(*columns);
  const auto say = [&](const std::string& piece) {
    if (!session.json) engine.print(flow ? flow->add(piece) : piece);
  };
  const serve::CompletedAnswer answer =
      engine.ask(request, {.on_token =
                               [&](const text::SampledToken& token) {
                                 say(words.add(token.id));
                                 return !words.found_stop();
                               },
                           .on_logits = [&](const engine::LogitsEvent& rows) { logits.take(rows); }});
  say(words.finish());
  if (flow && !session.json) engine.print(flow->finish());
  logits.finish();
  const predict::RunAsked asked = asked_of(spec, request, answer);
  const auto predicted = predict::predict_run(asked);
  // An answer of one token has no rate; one that a recovery interrupted says nothing about speed.
  const bool is_measurement = answer.decode.value > 0 && engine.client().recoveries().empty();
  const bool is_kept = !a.no_history && is_measurement;
  const bool is_traced = !a.trace.empty();
  const auto account =
      is_kept || a.why || is_traced ? engine.client().account(is_traced ? kTraceTime : kAccountLimit) : std::nullopt;
  std::optional<why::RunQuestion> question;
  if (account) question = predict::why_question(session_options(session), asked, account->account);
  std::optional<bench::WrittenTrace> trace;
  if (is_traced) trace.emplace(a.trace, account ? account->traces : std::vector<spec::RankTrace>());
  if (session.json) {
    Document out = as_json(a, engine, request, answer, words.all());
    if (predicted) out.add("predicted", to_json(*predicted));
    if (a.why && question) out.add("why", why::to_json(why::evaluate_run(*question)));
    if (trace) out.add("trace", trace->summary());
    session.print_json(out);
  } else {
    if (!words.all().ends_with('\n') && !words.all().empty()) engine.print("\n");
    if (!session.quiet) {
      engine.note(summary(engine, request, answer));
      if (predicted) engine.note(predict::predicted_text(*predicted, answer.decode_rate()));
      if (const auto note = chat::cpu_note(engine.ready())) engine.note(*note);
    }
  }
  if (a.why && question && !session.json) engine.note(why::answer_text(why::evaluate_run(*question)));
  if (trace && !session.json) engine.note(trace->text());
  if (is_kept) {
    bench::RunRecord record = record_of(a, engine.ready(), request, answer, predicted);
    if (question) predict::keep_question(record, *question);
    session.warn(bench::keep_record(record));
  }
  return kExitOk;
}

}  // namespace

CommandRow run_command() {
  return {
      .name = "run",
      .summary = "one prompt, one answer, over one node or several",
      .description =
          "Loads a model, split over ranks on the nodes of the cluster or on this machine, and continues a prompt. "
          "The text comes as it is made. Where the model has a chat template the prompt is a user's message; --raw "
          "gives it as it is. The likeliest token is taken, unless the model's generation_config.json or an option "
          "says otherwise. A rank that dies is started again, and the answer goes on. A model that does not "
          "fit is refused before anything is loaded. Without MODEL it is the small one that ships with yoke. It "
          "runs on an NVIDIA GPU where yoke has kernels for it, else on the CPU. See docs/running.md.",
      .examples = {{"yoke run -p 'Which cable joins two units?'", "the model that ships with yoke, on this machine"},
                   {"yoke run models/nano -p 'MTU 9000' --raw -n 20 --ranks 2 --json", "two ranks; for a program"},
                   {"echo 'What is the 13 Gb/s state?' | yoke run models/nano --nodes 2", "two nodes of a cluster"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<RunArguments>();
        table.value("-p,--prompt", "TEXT", "the prompt (standard input)", a->prompt);
        table.value("--ids", "1,2,3", "token ids instead of a text; no tokenizer is needed", a->ids);
        table.flag("--chat", "insist on the chat template", a->chat);
        table.flag("--raw", "give the text as it is, without the chat template", a->raw);
        table.value("--system", "TEXT", "a system message before the prompt", a->system);
        declare_sampling(table, a->sampling);
        table.value("--logprobs", "N", "also print log-probabilities, and those of the N likeliest (with --json)",
                    a->sampling.logprobs);
        table.value("--logits", "FILE", "write the prompt's logits as safetensors: 'logits', f32 [tokens, words]",
                    a->logits);
        declare_engine(table, a->engine, Presence::kOptional);
        table.flag("--no-history", "do not keep the speed in the history of 'yoke bench'", a->no_history);
        table.value("--trace", "FILE", bench::kTraceHelp, a->trace);
        table.flag("--why", "also print what the steps were made of, and which part is off ('yoke why')", a->why);
        return [a](Session& session) { return run_prompt(session, *a); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
