#include "yoke/chat/chat_talk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/report/word_flow.h"
#include "yoke/serve/answer_text.h"

namespace yoke::chat {
namespace {

constexpr std::string_view kHelp =
    "/help, /?           this\n"
    "/reset              start over; the system message stays\n"
    "/system TEXT        set the system message (without TEXT: none) and start over\n"
    "/set NAME VALUE     temperature, top-k, top-p, min-p, seed, tokens, …; default takes it back\n"
    "/set stats on|off   tokens per second after each answer\n"
    "/show               the settings, the system message and the length of the conversation\n"
    "/retry              another answer to the last question, by another seed\n"
    "/save FILE          write the conversation as JSON; /load FILE goes on with one\n"
    "/stats              the last answer in numbers, and where the model runs\n"
    "/quit, /bye         end, as does Ctrl-D\n"
    "\"\"\" begins a message of several lines and ends it; Alt-Enter begins another line.\n"
    "Ctrl-C stops an answer; twice at the prompt it ends the chat. Ctrl-R searches the history.\n";

const std::vector<std::string> kCommands = {"/help", "/reset", "/system", "/set",  "/show", "/retry",
                                            "/save", "/load",  "/stats",  "/quit", "/bye",  "/exit"};

std::uint64_t another_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

ChatTalk::ChatTalk(terminal::Session& session, const ChatArguments& a, const serve::ModelText& text,
                   EngineSession& engine)
    : session_(session),
      text_(text),
      engine_(engine),
      sampling_(a.sampling),
      said_{.model = std::filesystem::path(a.model).filename(), .system = a.system, .messages = {}},
      at_terminal_(isatty(STDIN_FILENO) != 0 && !session.json) {}

int ChatTalk::talk() {
  const bool editable = at_terminal_ && takes_escapes(STDIN_FILENO) && takes_escapes(STDOUT_FILENO);
  if (at_terminal_) {
    session_.print(first_line());
    if (const auto note = cpu_note(engine_.ready())) engine_.note(*note);
  }
  warn_of_ignored_system();
  const auto input = editable ? chat_from_terminal(engine_)
                              : chat_from_lines(engine_, at_terminal_ ? PromptShown::kYes : PromptShown::kNo);
  bool interrupted = false;  // just now, at the prompt
  while (true) {
    const ChatLine line = input->wait();
    if (line.kind == ChatLine::Kind::kInterrupt) {
      if (line.signal_number != SIGINT) engine_.client().end_for(line.signal_number);
      if (std::exchange(interrupted, true)) break;
      engine_.print("\n");
      engine_.note("Ctrl-C again ends the chat, as do Ctrl-D and /quit");
      continue;
    }
    interrupted = false;
    if (line.kind == ChatLine::Kind::kEnd || !take_line(line.text)) break;
  }
  if (at_terminal_) engine_.print("\n");
  return at_terminal_ ? kExitOk : status_;
}

std::string ChatTalk::first_line() const {
  const engine::EngineReady& ready = engine_.ready();
  Bytes weights{};
  for (const Bytes each : ready.weights_each) weights = weights + each;
  std::vector<std::string> nodes = ready.nodes;
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::string where = ready.ranks == 1 ? "1 rank" : fmt::format("{} ranks", ready.ranks);
  for (std::size_t i = 0; i < nodes.size(); ++i) where += (i == 0 ? " on " : ", ") + nodes[i];
  std::string context = context_note(ready);
  if (context.empty()) context = fmt::format("context of {} tokens", ready.context_max);
  return fmt::format("{}: {} of weights, {}, {}, CPU ({}). /help lists the commands, Ctrl-D ends.\n", said_.model,
                     to_string(weights), context, where, ready.backend);
}

void ChatTalk::warn_of_ignored_system() {
  if (!said_.system) return;
  const auto encoded = [this](const std::optional<std::string>& system) {
    const std::vector<ChatMessage> before = std::exchange(said_.messages, {{"user", "x"}});
    const auto ids = try_to([&] { return encode(system); });
    said_.messages = before;
    return ids;
  };
  const auto with = encoded(said_.system);
  const auto without = encoded(std::nullopt);
  if (with && without && *with == *without) {
    engine_.note("the chat template of this model drops system messages: it will not see this one");
  }
}

bool ChatTalk::take_line(const std::string& line) {
  const std::string_view words = trim(line);
  if (words.empty()) return true;
  // A program's lines are messages, whatever they begin with.
  if (words.starts_with('/') && !session_.json) {
    if (words == "/quit" || words == "/exit" || words == "/bye") return false;
    try {
      obey(words);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted) throw;
      report_failure(error);
    }
    return true;
  }
  if (at_terminal_ && (words == "exit" || words == "quit")) {
    engine_.note(fmt::format("/{} ends the chat, as does Ctrl-D", words));
    return true;
  }
  ask(words);
  return true;
}

void ChatTalk::ask(std::string_view question) {
  asked_from_ = said_.messages.size();
  try {
    answer(question);
  } catch (const Error& error) {
    // What is wrong with this message is no end of the conversation; what ends the engine is.
    if (error.code() != ErrorCode::kInvalid) throw;
    report_failure(error);
    said_.messages.resize(asked_from_);
  }
}

void ChatTalk::report_failure(const Error& error) {
  if (status_ == kExitOk) status_ = error.exit_status();
  engine_.note(error.message() + (error.hint().empty() ? "" : "; " + error.hint()));
  if (session_.json) {
    engine_.print(
        print_json(Document::map({{"error", terminal::error_json(error, error.exit_status())}}), JsonLayout::kOneLine) +
        "\n");
  }
}

void ChatTalk::obey(std::string_view words) {
  const std::size_t blank = words.find(' ');
  const std::string_view command = words.substr(0, blank);
  const std::string rest(blank == std::string_view::npos ? std::string_view() : trim(words.substr(blank)));
  if (command == "/help" || command == "/?") {
    session_.print(kHelp);
  } else if (command == "/set") {
    set(rest);
  } else if (command == "/show") {
    session_.print(show());
  } else if (command == "/stats") {
    engine_.note(stats());
  } else if (!obey_conversation(command, rest)) {
    engine_.note(
        fmt::format("there is no command {}; {}", printable(command, 40), suggest(command, kCommands, "commands")));
  }
}

bool ChatTalk::obey_conversation(std::string_view command, const std::string& rest) {
  const auto need_file = [&] {
    if (!rest.empty()) return;
    throw Error(ErrorCode::kUsage, fmt::format("{} needs a file", command), fmt::format("{} talk.json", command));
  };
  if (command == "/reset") {
    said_.messages.clear();
    engine_.note("a new conversation");
  } else if (command == "/system") {
    said_.system = rest.empty() ? std::nullopt : std::optional(rest);
    said_.messages.clear();
    engine_.note(said_.system ? "a new conversation with this system message" : "a new conversation");
    warn_of_ignored_system();
  } else if (command == "/save") {
    need_file();
    save_conversation(rest, said_);
    engine_.note(fmt::format("{} messages are in {}", said_.messages.size(), rest));
  } else if (command == "/load") {
    need_file();
    load(rest);
  } else if (command == "/retry") {
    retry();
  } else {
    return false;
  }
  return true;
}

void ChatTalk::set(std::string_view words) {
  const std::size_t blank = words.find(' ');
  if (blank == std::string_view::npos) {
    throw Error(ErrorCode::kUsage, "/set needs a name and a value", "/set temperature 0.8; /show shows them all");
  }
  const std::string_view name = words.substr(0, blank), value = trim(words.substr(blank));
  if (name == "stats" && (value == "on" || value == "off")) {
    shows_rate_ = value == "on";
    engine_.note(shows_rate_ ? "tokens per second after each answer" : "no figures after an answer");
    return;
  }
  SamplingArguments changed = sampling_;
  const std::string what = set_sampling(changed, name, value);
  sampling_of(changed, text_);  // throws what makes no sense
  sampling_ = changed;
  engine_.note(what);
}

void ChatTalk::load(const std::string& file) {
  Conversation loaded = load_conversation(file);
  const std::string model = std::exchange(loaded.model, said_.model);
  said_ = std::move(loaded);
  engine_.note(fmt::format("{} messages of {}{}", said_.messages.size(), file,
                           model == said_.model ? "" : fmt::format(", which were made with {}", printable(model, 60))));
}

void ChatTalk::retry() {
  if (said_.messages.size() < 2) throw Error(ErrorCode::kUsage, "there is no answer yet", "ask something first");
  const std::string question = said_.messages[said_.messages.size() - 2].content;
  said_.messages.resize(said_.messages.size() - 2);
  const std::optional<std::uint64_t> seed = std::exchange(sampling_.seed, another_seed());
  if (sampling_of(sampling_, text_).temperature == 0) {
    engine_.note("the temperature is 0, so the answer is the same again: /set temperature 0.8 draws another");
  }
  ask(question);
  sampling_.seed = seed;
}

std::string ChatTalk::show() const {
  return show_sampling(sampling_of(sampling_, text_), answer_max_of(sampling_, text_)) +
         fmt::format("stats               {}\nsystem message      {}\nmessages            {}\n",
                     shows_rate_ ? "on" : "off", said_.system.value_or("(none)"), said_.messages.size());
}

std::string ChatTalk::stats() const {
  const std::string where = serve::describe(engine_.ready());
  if (!last_) return where;
  return fmt::format("{} of {} tokens of context; prompt {:.1f} tokens/s, answer {:.1f} tokens/s; {}",
                     last_prompt_ + last_->tokens.size(), engine_.ready().context_max,
                     last_->prefill_rate(last_prompt_), last_->decode_rate(), where);
}

std::vector<text::TokenId> ChatTalk::encode(const std::optional<std::string>& system) const {
  Document all = Document::list();
  if (system) all.items.push_back(serve::chat_message("system", *system));
  for (const ChatMessage& message : said_.messages)
    all.items.push_back(serve::chat_message(message.role, message.content));
  return text_.encode_chat(all);
}

// The oldest turns go where the context is too small for all and an answer.
std::vector<text::TokenId> ChatTalk::encode_what_fits() {
  const std::int64_t context = engine_.ready().context_max;
  const std::int64_t room = std::max<std::int64_t>(1, std::min(answer_max_of(sampling_, text_), context / 4));
  std::vector<text::TokenId> ids = encode(said_.system);
  bool dropped = false;
  while (std::ssize(ids) + room > context && said_.messages.size() > 2) {
    said_.messages.erase(said_.messages.begin(), said_.messages.begin() + 2);  // a question and its answer
    asked_from_ = said_.messages.size() - 1;
    dropped = true;
    ids = encode(said_.system);
  }
  // From now on nearly every turn pushes one out: once is enough.
  if (dropped && !std::exchange(full_reported_, true)) {
    engine_.note(fmt::format("the context of {} tokens is full: from now on the oldest turns are forgotten", context));
  }
  if (!dropped && said_.messages.size() == 1) full_reported_ = false;  // a new conversation
  return ids;
}

void ChatTalk::answer(std::string_view question) {
  serve::check_utf8(question, "the message");
  said_.messages.push_back({"user", std::string(question)});
  engine::Request request;
  request.prompt = encode_what_fits();
  request.answer_max = answer_max_of(sampling_, text_);
  request.stop_ids = text_.stop_ids;
  request.sampling = sampling_of(sampling_, text_);
  serve::AnswerText words(text_, sampling_.stops);
  std::optional<report::WordFlow> flow;
  if (const auto columns = terminal_columns(STDOUT_FILENO)) flow.emplace(*columns);
  const auto say = [&](const std::string& piece) {
    if (!session_.json) engine_.print(flow ? flow->add(piece) : piece);
  };
  const serve::CompletedAnswer answered = engine_.ask(request, {.on_token =
                                                                    [&](const text::SampledToken& token) {
                                                                      say(words.add(token.id));
                                                                      return !words.found_stop();
                                                                    },
                                                                .interrupt = serve::InterruptMeans::kAnswerEnough});
  say(words.finish());
  say("\n");
  if (words.all().empty()) {
    said_.messages.resize(asked_from_);  // nothing was said: no template has a place for that
  } else {
    said_.messages.push_back({"assistant", words.all()});
  }
  last_ = answered;
  last_prompt_ = request.prompt.size();
  if (session_.json) print_turn(answered, words.all());
  if (shows_rate_ && !session_.json) {
    engine_.note(fmt::format("{} tokens, {:.1f} tokens/s", answered.tokens.size(), answered.decode_rate()));
  }
}

void ChatTalk::print_turn(const serve::CompletedAnswer& answered, const std::string& text) {
  std::vector<text::TokenId> tokens;
  for (const text::SampledToken& token : answered.tokens) tokens.push_back(token.id);
  engine_.print(print_json(Document::map({{"prompt_tokens", to_document(last_prompt_)},
                                          {"tokens", to_document(tokens)},
                                          {"text", Document::string(text)},
                                          {"finish", to_document(answered.finish)}}),
                           JsonLayout::kOneLine) +
                "\n");
}

}  // namespace yoke::chat
