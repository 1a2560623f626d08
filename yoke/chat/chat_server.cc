#include "yoke/chat/chat_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/http/plain_client.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/upstream_text.h"

namespace yoke::chat {
namespace {

using namespace literals;

constexpr Seconds kServerTurn{0.2};      // between two looks at Ctrl-C
constexpr Seconds kServerPatience{600};  // for a whole answer
constexpr std::string_view kServerHelp =
    "/reset starts over, /system TEXT sets the system message and starts over, /quit or Ctrl-D ends, Ctrl-C ends "
    "too.\n";

class ServerTalk {
 public:
  ServerTalk(const terminal::Session& session, const ChatArguments& arguments, const serve::UpstreamUrl& url)
      : session_(session), a_(arguments), server_{url.host, url.port}, system_(arguments.system) {
    if (const char* const key = std::getenv("OPENAI_API_KEY")) key_ = key;
  }

  int talk() {
    const bool at_terminal = isatty(STDIN_FILENO) != 0 && !session_.json;
    if (at_terminal) session_.print(fmt::format("{} at {}. {}", model(), to_string(server_), kServerHelp));
    std::string line;
    while (true) {
      if (at_terminal) session_.print("> ");
      if (!std::getline(std::cin, line)) break;
      throw_if_interrupted();
      const std::string_view words = trim(line);
      if (words.empty()) continue;
      if (words.starts_with('/') && !session_.json) {
        if (!obey(words)) break;
        continue;
      }
      take_turn(std::string(words));
    }
    if (at_terminal) session_.print("\n");
    return at_terminal ? kExitOk : status_;
  }

 private:
  // The name of the model, which also shows that somebody is there.
  std::string model() const {
    const http::HttpAnswer answer = http::ask(server_, question("/v1/models", ""), Deadline::after(10_s));
    if (answer.status != 200) throw refused(answer.status, answer.body);
    const Document models = parse_json(answer.body, "the list of models");
    const auto* const list = serve::given_field(models, "data");
    const auto* const id = list && !list->items.empty() ? serve::given_field(list->items.front(), "id") : nullptr;
    return id ? id->text : "a model";
  }

  http::HttpQuestion question(const std::string& path, std::string body) const {
    http::HttpQuestion asked{.method = body.empty() ? "GET" : "POST", .path = path, .body = std::move(body)};
    if (key_) asked.headers.emplace_back("Authorization", "Bearer " + *key_);
    return asked;
  }

  static Error refused(int status, const std::string& body) {
    const auto read = try_to([&] { return parse_json(body, "the error"); });
    const auto* const error = read ? serve::given_field(*read, "error") : nullptr;
    const auto* const message = error ? serve::given_field(*error, "message") : nullptr;
    return Error(status < 500 ? ErrorCode::kInvalid : ErrorCode::kUnavailable,
                 fmt::format("the server answers with the status {}: {}", status,
                             message ? message->text : printable(trim(body), 200)),
                 status == 401 ? "put the key into OPENAI_API_KEY" : "");
  }

  bool obey(std::string_view words) {
    if (words == "/quit" || words == "/exit" || words == "/bye") return false;
    if (words == "/reset" || words.starts_with("/system")) {
      if (words != "/reset") {
        const std::string_view text = trim(words.substr(7));
        system_ = text.empty() ? std::nullopt : std::optional<std::string>(text);
      }
      messages_.clear();
      session_.print("a new conversation\n");
    } else {
      session_.print(kServerHelp);
    }
    return true;
  }

  std::string body() const {
    Document messages = Document::list();
    const auto add = [&](const std::string& role, const std::string& content) {
      messages.items.push_back(
          Document::map({{"role", Document::string(role)}, {"content", Document::string(content)}}));
    };
    if (system_) add("system", *system_);
    for (const ChatMessage& one : messages_) add(one.role, one.content);
    Document asked = Document::map({{"messages", std::move(messages)}, {"stream", Document::boolean(true)}});
    const SamplingArguments& s = a_.sampling;
    const auto number = [&](const char* key, const auto& value) {
      if (value) asked.add(key, Document::number(static_cast<double>(*value)));
    };
    number("temperature", s.temperature);
    number("top_p", s.top_p);
    number("min_p", s.min_p);
    number("repetition_penalty", s.repetition_penalty);
    number("frequency_penalty", s.frequency_penalty);
    number("presence_penalty", s.presence_penalty);
    if (s.top_k) asked.add("top_k", Document::number(std::int64_t{*s.top_k}));
    if (s.tokens) asked.add("max_tokens", Document::number(std::int64_t{*s.tokens}));
    if (s.seed) asked.add("seed", Document::number(static_cast<std::int64_t>(*s.seed)));
    if (!s.stops.empty()) {
      Document stops = Document::list();
      for (const std::string& one : s.stops) stops.items.push_back(Document::string(one));
      asked.add("stop", std::move(stops));
    }
    return print_json(asked, JsonLayout::kOneLine);
  }

  // What is wrong with this message is no end of the conversation.
  void take_turn(const std::string& said) {
    messages_.push_back({"user", said});
    try {
      const std::string answer = ask();
      messages_.push_back({"assistant", answer});
      if (session_.json) {
        session_.print_as_is(print_json(Document::map({{"text", Document::string(answer)}}), JsonLayout::kOneLine) +
                             "\n");
      } else {
        session_.print("\n");
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalid) throw;
      messages_.pop_back();
      if (status_ == kExitOk) status_ = error.exit_status();
      session_.warn({error.message()});
      if (session_.json) {
        session_.print_as_is(print_json(Document::map({{"error", terminal::error_json(error, error.exit_status())}}),
                                        JsonLayout::kOneLine) +
                             "\n");
      }
    }
  }

  std::string ask() const {
    http::AnswerStream stream(server_, question("/v1/chat/completions", body()), Deadline::after(30_s));
    serve::SseReader events;
    std::string text, refusal;
    const http::HttpAnswer* head = nullptr;
    const auto take = [&](const std::string& bytes) {
      if (head->status != 200) refusal += bytes;
      if (head->status != 200) return;
      for (const std::string& event : events.add(bytes)) text += take_event(event);
    };
    for (const Deadline deadline = Deadline::after(kServerPatience); !stream.is_complete();) {
      throw_if_interrupted();
      if (deadline.expired()) throw Error(ErrorCode::kTimeout, "the answer took too long");
      if (!head) head = stream.head(kServerTurn);
      if (head) take(stream.read(kServerTurn));
    }
    if (!head) head = stream.head({});
    take(stream.read({}));
    if (head->status != 200) throw refused(head->status, refusal);
    return text;
  }

  // The text that an event adds, which is shown at once.
  std::string take_event(const std::string& data) const {
    if (data == "[DONE]") return {};
    const Document event = parse_json(data, "an event of the server");
    if (const auto* const error = serve::given_field(event, "error")) {
      const auto* const message = serve::given_field(*error, "message");
      throw Error(ErrorCode::kUnavailable, message ? message->text : "the server ended the answer with an error");
    }
    const auto* const choices = serve::given_field(event, "choices");
    const auto* const delta =
        choices && !choices->items.empty() ? serve::given_field(choices->items.front(), "delta") : nullptr;
    const auto* const text = delta ? serve::given_field(*delta, "content") : nullptr;
    if (!text) return {};
    if (!session_.json) session_.print(text->text);
    return text->text;
  }

  const terminal::Session& session_;
  const ChatArguments& a_;
  const Endpoint server_;
  std::optional<std::string> key_;
  std::optional<std::string> system_;
  std::vector<ChatMessage> messages_;
  int status_ = kExitOk;
};

}  // namespace

int chat_with_server(const terminal::Session& session, const ChatArguments& arguments, const std::string& url) {
  return ServerTalk(session, arguments, serve::parse_upstream(url)).talk();
}

}  // namespace yoke::chat
