// yoke chat: a conversation in the terminal, or of the lines of a pipe.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/line_buffer.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/engine_session.h"
#include "yoke/cli/sampling_options.h"
#include "yoke/serve/answer_text.h"

namespace yoke {
namespace {

using namespace literals;

constexpr int kTurnMs = 50;

struct ChatArguments {
  EngineArguments engine;
  SamplingArguments sampling;
  std::optional<std::string> system;
};

// One word of the user: a line, Ctrl-C, or the end.
struct Input {
  enum class Kind { kLine, kInterrupt, kEnd } kind = Kind::kEnd;
  std::string line = {};
  int signal_number = 0;
};

class Typed {
 public:
  // Meanwhile what happens to the engine is shown.
  Input wait(EngineSession& engine) {
    while (true) {
      if (auto line = buffer_.take_line(ended_ ? LineBuffer::More::kNone : LineBuffer::More::kMayCome)) {
        return {.kind = Input::Kind::kLine, .line = *std::move(line)};
      }
      if (ended_) return {};
      if (const auto number = engine.client().take_interrupt()) {
        return {.kind = Input::Kind::kInterrupt, .signal_number = *number};
      }
      engine.client().idle(0_s);
      read_more();
    }
  }

 private:
  void read_more() {
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (poll(&waiting, 1, kTurnMs) <= 0) return;
    char buffer[4096];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count > 0) buffer_.append({buffer, static_cast<std::size_t>(count)});
    ended_ = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
  }

  LineBuffer buffer_;
  bool ended_ = false;
};

constexpr std::string_view kHelp =
    "/help          this\n"
    "/reset         begin anew; the system message stays\n"
    "/system TEXT   set the system message (without TEXT: none) and begin anew\n"
    "/stats         the last answer in numbers, and where the model runs\n"
    "/quit          end, as does Ctrl-D\n"
    "Ctrl-C stops an answer; twice at the prompt it ends the chat.\n";

class Chat {
 public:
  Chat(Session& session, const ChatArguments& a, const ModelText& text, EngineSession& engine)
      : session_(session),
        text_(text),
        engine_(engine),
        stops_(a.sampling.stops),
        system_(a.system),
        answer_most_(answer_most_of(a.sampling, text)),
        sampling_(sampling_of(a.sampling, text)),
        at_terminal_(isatty(STDIN_FILENO) != 0 && !session.json) {}

  // The exit status: of a pipe that of the first turn that failed, since nobody was there to see it.
  int talk() {
    if (at_terminal_) engine_.print("Ask; /help tells the commands, Ctrl-D ends.\n");
    Typed typed;
    bool interrupted = false;  // just now, at the prompt
    while (true) {
      if (at_terminal_) engine_.print("> ");
      const Input input = typed.wait(engine_);
      if (input.kind == Input::Kind::kInterrupt) {
        if (input.signal_number != SIGINT) engine_.client().end_for(input.signal_number);
        if (std::exchange(interrupted, true)) break;
        engine_.print("\n");
        engine_.note("Ctrl-C again ends the chat, as do Ctrl-D and /quit");
        continue;
      }
      interrupted = false;
      if (input.kind == Input::Kind::kEnd || !take_line(input.line)) break;
    }
    if (at_terminal_) engine_.print("\n");
    return at_terminal_ ? kExitOk : status_;
  }

 private:
  // False: the user wants to go.
  bool take_line(const std::string& line) {
    const std::string_view words = trim(line);
    if (words.empty()) return true;
    // A program's lines are messages, whatever they begin with.
    if (words.starts_with('/') && !session_.json) {
      if (words == "/quit" || words == "/exit") return false;
      obey(words);
      return true;
    }
    asked_from_ = messages_.size();
    try {
      answer(words);
    } catch (const Error& error) {
      // What is wrong with this message is no end of the conversation; what ends the engine is.
      if (error.code() != ErrorCode::kInvalid) throw;
      tell_failure(error);
      messages_.resize(asked_from_);
    }
    return true;
  }

  void tell_failure(const Error& error) {
    if (status_ == kExitOk) status_ = error.exit_status();
    engine_.note(error.message() + (error.hint().empty() ? "" : "; " + error.hint()));
    if (session_.json) {
      engine_.print(
          print_json(Document::map({{"error", error_json(error, error.exit_status())}}), JsonLayout::kOneLine) + "\n");
    }
  }

  void obey(std::string_view words) {
    const std::size_t blank = words.find(' ');
    const std::string_view command = words.substr(0, blank);
    const std::string_view rest = blank == std::string_view::npos ? std::string_view() : trim(words.substr(blank));
    if (command == "/help") {
      engine_.print(kHelp);
    } else if (command == "/reset") {
      messages_.clear();
      engine_.note("a new conversation");
    } else if (command == "/system") {
      system_ = rest.empty() ? std::nullopt : std::optional(std::string(rest));
      messages_.clear();
      engine_.note(system_ ? "a new conversation with this system message" : "a new conversation");
    } else if (command == "/stats") {
      engine_.note(stats());
    } else {
      const std::vector<std::string> known = {"/help", "/reset", "/system", "/stats", "/quit"};
      engine_.note(
          fmt::format("there is no command {}; {}", printable(command, 40), suggest(command, known, "commands")));
    }
  }

  std::string stats() const {
    const std::string where = describe(engine_.ready());
    if (!last_) return where;
    return fmt::format("{} of {} tokens of context; prompt {:.1f} tokens/s, answer {:.1f} tokens/s; {}",
                       last_prompt_ + last_->tokens.size(), engine_.ready().context_most,
                       last_->prefill_rate(last_prompt_), last_->decode_rate(), where);
  }

  std::vector<TokenId> encode() const {
    Document all = Document::list();
    if (system_) all.items.push_back(chat_message("system", *system_));
    all.items.insert(all.items.end(), messages_.begin(), messages_.end());
    return text_.encode_chat(all);
  }

  // The oldest turns go where the context is too small for all and an answer.
  std::vector<TokenId> encode_what_fits() {
    const std::int64_t context = engine_.ready().context_most;
    const std::int64_t room = std::max<std::int64_t>(1, std::min(answer_most_, context / 4));
    std::vector<TokenId> ids = encode();
    int dropped = 0;
    while (std::ssize(ids) + room > context && messages_.size() > 2) {
      messages_.erase(messages_.begin(), messages_.begin() + 2);  // a question and its answer
      asked_from_ = messages_.size() - 1;
      ++dropped;
      ids = encode();
    }
    if (dropped > 0) {
      engine_.note(fmt::format("the context of {} tokens is full: {} forgotten", context,
                               dropped == 1 ? "the oldest turn is" : fmt::format("the {} oldest turns are", dropped)));
    }
    return ids;
  }

  void answer(std::string_view question) {
    check_utf8(question, "the message");
    messages_.push_back(chat_message("user", std::string(question)));
    Request request;
    request.prompt = encode_what_fits();
    request.answer_most = answer_most_;
    request.stop_ids = text_.stop_ids;
    request.sampling = sampling_;
    AnswerText words(text_, stops_);
    const Answered answered = engine_.ask(request, {.on_token =
                                                        [&](const Sampled& token) {
                                                          say(words.add(token.id));
                                                          return !words.found_stop();
                                                        },
                                                    .interrupt = InterruptMeans::kAnswerEnough});
    say(words.finish());
    say("\n");
    if (words.all().empty()) {
      messages_.resize(asked_from_);  // nothing was said: no template has a place for that
    } else {
      messages_.push_back(chat_message("assistant", words.all()));
    }
    last_ = answered;
    last_prompt_ = request.prompt.size();
    if (session_.json) print_turn(answered, words.all());
  }

  void say(const std::string& piece) {
    if (!session_.json) engine_.print(piece);
  }

  void print_turn(const Answered& answered, const std::string& text) {
    std::vector<TokenId> tokens;
    for (const Sampled& token : answered.tokens) tokens.push_back(token.id);
    engine_.print(print_json(Document::map({{"prompt_tokens", to_document(last_prompt_)},
                                            {"tokens", to_document(tokens)},
                                            {"text", Document::string(text)},
                                            {"finish", to_document(answered.finish)}}),
                             JsonLayout::kOneLine) +
                  "\n");
  }

  Session& session_;
  const ModelText& text_;
  EngineSession& engine_;
  std::vector<std::string> stops_;
  std::optional<std::string> system_;
  std::int64_t answer_most_;
  SamplingOptions sampling_;
  bool at_terminal_;
  std::vector<Document> messages_;  // of the user and the model in turns, without the system's
  std::size_t asked_from_ = 0;      // as many were there before the question
  std::optional<Answered> last_;
  std::size_t last_prompt_ = 0;
  int status_ = kExitOk;
};

int run_chat(Session& session, const ChatArguments& a) {
  const EngineHostSpec spec = host_spec(session, a.engine);
  if (const auto status = follow_if_not_first(spec)) return *status;
  const ModelText text = ModelText::load(a.engine.model);
  if (!text.chat) {
    if (text.chat.error().code() != ErrorCode::kNotFound) throw Error(text.chat.error());
    throw Error(ErrorCode::kNotFound, fmt::format("'{}' has no chat template", a.engine.model),
                "it continues plain text: yoke run MODEL -p TEXT");
  }
  if (a.system) check_utf8(*a.system, "--system");
  // Mistakes are told before the model is loaded.
  check_sampling(sampling_of(a.sampling, text), static_cast<TokenId>(request_limits(spec.engine).vocabulary));
  EngineSession engine(session, spec);
  return Chat(session, a, text, engine).talk();
}

}  // namespace

CommandRow chat_command() {
  return {.name = "chat",
          .summary = "a conversation with a model, in the terminal",
          .description =
              "Loads a model as 'yoke run' does and talks with it by its chat template. Ctrl-C stops an answer and not "
              "the program; Ctrl-D ends. When the context is full the oldest turns are forgotten, and that is said. "
              "/help lists the commands of the conversation. From a pipe each line is a turn, and the exit status is "
              "not 0 where a turn failed; with --json every line is a message, also one that begins with '/', and each "
              "turn answers with a line of JSON: an answer, or an error.",
          .examples = {{"yoke chat models/nano", "on this machine"},
                       {"yoke chat models/nano --ranks 2", "over two ranks: kill one, and it goes on"},
                       {"printf 'Hi\\nWhich cable joins two units?\\n' | yoke chat models/nano", "lines of a pipe"}},
          .prepare = [](OptionTable& table) -> Action {
            auto a = std::make_shared<ChatArguments>();
            table.value("--system", "TEXT", "a system message before the conversation", a->system);
            declare_sampling(table, a->sampling);
            declare_engine(table, a->engine);
            return [a](Session& session) { return run_chat(session, *a); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke
