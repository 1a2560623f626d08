// yoke run: one prompt, one answer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <iterator>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_session.h"
#include "yoke/cli/sampling_options.h"
#include "yoke/cli/standard_input.h"
#include "yoke/serve/answer_text.h"
#include "yoke/weights/writer.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kPromptMost{64 << 20};

struct RunArguments {
  EngineArguments engine;
  SamplingArguments sampling;
  std::optional<std::string> prompt, ids, system;
  fs::path logits;
  bool chat = false, raw = false;
};

void check_arguments(const Session& session, const RunArguments& a) {
  const auto refuse = [](bool wrong, const char* message, const char* hint) {
    if (wrong) throw Error(ErrorCode::kUsage, message, hint);
  };
  refuse(a.prompt && a.ids, "-p and --ids are two prompts", "give one of them");
  refuse(a.chat && a.raw, "--chat and --raw contradict each other", "give one of them, or neither");
  refuse(a.raw && a.system, "--system needs the chat template, which --raw leaves out", "write it into the text");
  refuse(a.ids && (a.chat || a.raw || a.system), "--ids are taken as they are: no --chat, --raw or --system",
         "give a text with -p instead");
  refuse(a.sampling.logprobs.has_value() && !session.json, "--logprobs are only told in JSON", "add --json");
  if (!a.logits.empty() && fs::exists(a.logits)) {
    throw Error(ErrorCode::kConflict, fmt::format("'{}' exists already", a.logits.native()),
                "name another file for --logits, or remove it");
  }
  if (!a.logits.empty() && !fs::is_directory(fs::absolute(a.logits).parent_path())) {
    throw Error(ErrorCode::kNotFound, fmt::format("'{}' of --logits is in no folder that there is", a.logits.native()),
                "make the folder first");
  }
}

std::string read_prompt() {
  if (isatty(STDIN_FILENO) != 0) {
    throw Error(ErrorCode::kUsage, "there is no prompt", "give one with -p TEXT, or through standard input");
  }
  std::string text = read_standard_input(kPromptMost);
  // What a shell's echo or an editor ends a text with is no part of it.
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<TokenId> parse_ids(const std::string& text) {
  std::vector<TokenId> ids;
  for (const std::string& word : split(text, ',')) {
    const std::string_view digits = trim(word);
    TokenId id = 0;
    const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (failure != std::errc{} || rest != digits.data() + digits.size() || id < 0) {
      throw Error(ErrorCode::kUsage, fmt::format("--ids: '{}' is no token id", printable(word, 40)),
                  "give whole numbers from 0, separated by commas: 1,15043,3186");
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<TokenId> prompt_ids(const RunArguments& a, const ModelText& text) {
  if (a.ids) return parse_ids(*a.ids);
  const std::string prompt = a.prompt ? *a.prompt : read_prompt();
  if (prompt.empty()) {
    throw Error(ErrorCode::kInvalid, "the prompt is empty", "a model continues what it is given: say something");
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
  check_utf8(prompt, "the prompt");
  Document messages = Document::list();
  if (a.system) {
    check_utf8(*a.system, "--system");
    messages.items.push_back(chat_message("system", *a.system));
  }
  messages.items.push_back(chat_message("user", prompt));
  return text.encode_chat(messages);
}

// The prompt's logits, written as they come; the file is there when all have come.
class LogitsFile {
 public:
  LogitsFile(const fs::path& file, std::int64_t tokens, std::int64_t vocabulary) : missing_(tokens) {
    if (!file.empty())
      writer_.emplace(file, std::vector<TensorDeclaration>{{"logits", DType::kF32, {tokens, vocabulary}}});
  }
  void take(const LogitsMade& logits) {
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
  std::optional<SafetensorsWriter> writer_;
};

Document logprobs_json(const Answered& answer) {
  Document list = Document::list();
  const auto entry = [](TokenId id, float logprob) {
    return Document::map({{"id", Document::number(std::int64_t{id})}, {"logprob", Document::number(double{logprob})}});
  };
  for (const Sampled& token : answer.tokens) {
    Document one = entry(token.id, token.logprob);
    Document top = Document::list();
    for (const TokenLogprob& other : token.top) top.items.push_back(entry(other.id, other.logprob));
    one.add("top", std::move(top));
    list.items.push_back(std::move(one));
  }
  return list;
}

Document recoveries_json(EngineSession& engine) {
  Document list = Document::list();
  for (const EngineRecovered& one : engine.client().recoveries()) {
    list.items.push_back(
        Document::map({{"seconds", Document::number(one.after.value)}, {"cause", Document::string(one.cause)}}));
  }
  return list;
}

Document as_json(const RunArguments& a, EngineSession& engine, const Request& request, const Answered& answer,
                 const std::string& text) {
  const EngineReady& ready = engine.ready();
  std::vector<TokenId> tokens;
  for (const Sampled& token : answer.tokens) tokens.push_back(token.id);
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
                     {"context", Document::number(ready.context_most)},
                     {"weights_bytes_each", to_document(ready.weights_each)},
                     {"cache_bytes_each", to_document(ready.cache_each)},
                     {"recoveries", recoveries_json(engine)}});
  if (request.sampling.logprobs) out.add("logprobs", logprobs_json(answer));
  return out;
}

std::string summary(EngineSession& engine, const Request& request, const Answered& answer) {
  const std::size_t recoveries = engine.client().recoveries().size();
  return fmt::format(
      "prompt: {} tokens, {:.1f}/s; answer: {} tokens, {:.1f}/s; {}{}", request.prompt.size(),
      answer.prefill_rate(request.prompt.size()), answer.tokens.size(), answer.decode_rate(), describe(engine.ready()),
      recoveries > 0 ? fmt::format("; {} {}", recoveries, recoveries == 1 ? "recovery" : "recoveries") : std::string());
}

int run_prompt(Session& session, const RunArguments& a) {
  check_arguments(session, a);
  const EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const ModelText text =
      ModelText::load(a.engine.model, a.ids ? ModelText::Need::kNothing : ModelText::Need::kTokenizer);
  if (!text.tokenizer && !a.sampling.stops.empty()) {
    throw Error(ErrorCode::kUsage, "--stop needs a tokenizer: " + text.tokenizer.error().message(), "leave it out");
  }
  Request request;
  request.prompt = prompt_ids(a, text);
  request.answer_most = answer_most_of(a.sampling, text);
  request.stop_ids = text.stop_ids;
  request.sampling = sampling_of(a.sampling, text);
  if (!a.logits.empty()) request.logits = LogitsWanted::kAll;
  AnswerText words(text, a.sampling.stops);
  const SchedulerLimits limits = request_limits(spec.engine);
  check_request(request, limits);
  LogitsFile logits(a.logits, std::ssize(request.prompt), limits.vocabulary);
  EngineSession engine(session, spec);
  if (!text.tokenizer && !session.quiet) engine.note(text.tokenizer.error().message() + ": the answer is told as ids");
  const auto say = [&](const std::string& piece) {
    if (!session.json) engine.print(piece);
  };
  const Answered answer = engine.ask(request, {.on_token =
                                                   [&](const Sampled& token) {
                                                     say(words.add(token.id));
                                                     return !words.found_stop();
                                                   },
                                               .on_logits = [&](const LogitsMade& rows) { logits.take(rows); }});
  say(words.finish());
  logits.finish();
  if (session.json) {
    session.print_json(as_json(a, engine, request, answer, words.all()));
  } else {
    if (!words.all().ends_with('\n') && !words.all().empty()) engine.print("\n");
    if (!session.quiet) engine.note(summary(engine, request, answer));
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
          "fit is refused before anything is loaded. docs/running.md tells more.",
      .examples = {{"yoke run models/nano -p 'Which cable joins two units?'", "one rank on this machine"},
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
        table.value("--logprobs", "N", "also tell log-probabilities, and those of the N likeliest (with --json)",
                    a->sampling.logprobs);
        table.value("--logits", "FILE", "write the prompt's logits as safetensors: 'logits', f32 [tokens, words]",
                    a->logits);
        declare_engine(table, a->engine);
        return [a](Session& session) { return run_prompt(session, *a); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke
