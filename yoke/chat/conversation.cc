#include "yoke/chat/conversation.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::chat {

template <class Visitor>
void visit_fields(Visitor& visit, ChatMessage& message) {
  visit.required("role", message.role);
  visit.required("content", message.content);
}

template <class Visitor>
void visit_fields(Visitor& visit, Conversation& conversation) {
  visit.required("model", conversation.model);
  visit.optional("system", conversation.system);
  visit.required("messages", conversation.messages);
}

namespace fs = std::filesystem;
namespace {

const std::vector<std::string> kSettings = {
    "temperature",      "top-k", "top-p", "min-p", "repetition-penalty", "frequency-penalty",
    "presence-penalty", "seed",  "tokens"};

template <class Number>
void set_number(std::optional<Number>& target, std::string_view name, std::string_view value) {
  Number number{};
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failure != std::errc{} || end != value.data() + value.size()) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' is no number for {}", printable(value, 40), name),
                fmt::format("/set {} NUMBER, or /set {} default", name, name));
  }
  target = number;
}

template <class Number>
bool set_if(std::string_view wanted, std::string_view name, std::string_view value, std::optional<Number>& target) {
  if (name != wanted) return false;
  if (value == "default") {
    target.reset();
  } else {
    set_number(target, name, value);
  }
  return true;
}

}  // namespace

std::string print_conversation(const Conversation& conversation) {
  return print_json(to_document(conversation)) + "\n";
}

Conversation parse_conversation(std::string_view json, std::string_view source) {
  Conversation conversation = from_json<Conversation>(parse_json(json, source));
  bool is_users = true;
  for (const ChatMessage& message : conversation.messages) {
    if (message.role != (is_users ? "user" : "assistant")) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{}: a message of '{}' where one of {} should be", source, printable(message.role, 40),
                              is_users ? "user" : "assistant"),
                  "messages of user and assistant take turns, the user first");
    }
    is_users = !is_users;
  }
  if (!is_users) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the last message has no answer", source),
                "the last message is one of the assistant");
  }
  return conversation;
}

void save_conversation(const fs::path& file, const Conversation& conversation) {
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    throw Error(ErrorCode::kConflict, fmt::format("'{}' exists already", printable(file.native(), 200)),
                "name another file");
  }
  write_file_atomically(file, print_conversation(conversation), {.mode = 0600});
}

Conversation load_conversation(const fs::path& file) { return parse_conversation(read_file(file), file.native()); }

std::string set_sampling(SamplingArguments& a, std::string_view name, std::string_view value) {
  const bool known = set_if("temperature", name, value, a.temperature) || set_if("top-k", name, value, a.top_k) ||
                     set_if("top-p", name, value, a.top_p) || set_if("min-p", name, value, a.min_p) ||
                     set_if("repetition-penalty", name, value, a.repetition_penalty) ||
                     set_if("frequency-penalty", name, value, a.frequency_penalty) ||
                     set_if("presence-penalty", name, value, a.presence_penalty) ||
                     set_if("seed", name, value, a.seed) || set_if("tokens", name, value, a.tokens);
  if (!known) {
    throw Error(ErrorCode::kUsage, fmt::format("there is no setting '{}'", printable(name, 40)),
                suggest(name, kSettings, "settings"));
  }
  return fmt::format("{} is {} from the next answer on", name, value == "default" ? "the model's own" : value);
}

std::string show_sampling(const text::SamplingOptions& options, std::int64_t answer_max) {
  return fmt::format(
      "temperature         {:g}{}\ntop-k               {}\ntop-p               {:g}\nmin-p               {:g}\n"
      "repetition-penalty  {:g}\nfrequency-penalty   {:g}\npresence-penalty    {:g}\nseed                {}\n"
      "tokens              {} at most in an answer\n",
      options.temperature, options.temperature == 0 ? " (always the likeliest token)" : "", options.top_k,
      options.top_p, options.min_p, options.repetition_penalty, options.frequency_penalty, options.presence_penalty,
      options.seed, answer_max);
}

}  // namespace yoke::chat
