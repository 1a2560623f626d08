#include "yoke/engine/messages.h"

#include <fmt/format.h>

#include <limits>

#include "yoke/base/check.h"
#include "yoke/base/json.h"
#include "yoke/engine/event_json.h"
#include "yoke/engine/wire.h"

namespace yoke::engine {
namespace {

constexpr std::string_view kMagic = "YKE\x03";
constexpr std::size_t kHeaderSize = 8;

enum class ClientKind : std::uint8_t { kRequest = 1, kCancel = 2, kAccount = 3 };
enum class EventKind : std::uint8_t { kToken = 1, kRead = 2, kLogits = 3, kEnded = 4, kJson = 5, kStep = 6 };

std::string framed(const std::string& payload) {
  YOKE_CHECK_LE(payload.size(), std::numeric_limits<std::uint32_t>::max());
  const auto size = static_cast<std::uint32_t>(payload.size());
  std::string message(kMagic);
  message.append(reinterpret_cast<const char*>(&size), sizeof size);
  return message += payload;
}

// ---- events

void put_event(WireWriter& writer, const TokenEvent& made) {
  writer.put(EventKind::kToken);
  writer.put(made.id);
  writer.put(made.token.id);
  writer.put(made.token.logprob);
  writer.put(static_cast<std::uint32_t>(made.token.top.size()));
  for (const text::TokenLogprob& one : made.token.top) {
    writer.put(one.id);
    writer.put(one.logprob);
  }
}
void put_event(WireWriter& writer, const PromptProgress& read) {
  writer.put(EventKind::kRead);
  writer.put(read.id);
  writer.put(read.done);
  writer.put(read.total);
  writer.put(read.cached);
}
void put_event(WireWriter& writer, const StepDone& step) {
  writer.put(EventKind::kStep);
  writer.put(step.tokens);
  writer.put(step.preemptions);
}
void put_event(WireWriter& writer, const LogitsEvent& logits) {
  YOKE_CHECK_EQ(logits.rows.shape().rank(), 2U);
  writer.put(EventKind::kLogits);
  writer.put(logits.id);
  writer.put(logits.position);
  writer.put(logits.rows.extent(0));
  writer.put(logits.rows.extent(1));
  writer.put_list(logits.rows.span<float>());
}
template <class Event>
void put_event(WireWriter& writer, const Event& event) {
  if constexpr (std::is_same_v<Event, RequestEnded>) {
    if (!event.error) {
      writer.put(EventKind::kEnded);
      writer.put(event.id);
      writer.put(static_cast<std::uint8_t>(event.reason));
      return;
    }
  }
  writer.put(EventKind::kJson);
  writer.put_text(print_json(event_to_json(event), JsonLayout::kOneLine));
}

TokenEvent get_token(WireReader& reader) {
  TokenEvent made{.id = reader.get<std::uint64_t>(), .token = {}};
  made.token.id = reader.get<text::TokenId>();
  made.token.logprob = reader.get<float>();
  made.token.top.resize(reader.get_count(sizeof(text::TokenId) + sizeof(float)));
  for (text::TokenLogprob& one : made.token.top) {
    one.id = reader.get<text::TokenId>();
    one.logprob = reader.get<float>();
  }
  return made;
}

PromptProgress get_read(WireReader& reader) {
  PromptProgress read{.id = reader.get<std::uint64_t>()};
  read.done = reader.get<std::int64_t>();
  read.total = reader.get<std::int64_t>();
  read.cached = reader.get<std::int64_t>();
  return read;
}

StepDone get_step(WireReader& reader) {
  StepDone step{.tokens = reader.get<std::int64_t>()};
  step.preemptions = reader.get<std::int64_t>();
  return step;
}

LogitsEvent get_logits(WireReader& reader) {
  LogitsEvent logits{.id = reader.get<std::uint64_t>(), .position = reader.get<std::int64_t>(), .rows = {}};
  const auto rows = reader.get<std::int64_t>();
  const auto vocabulary = reader.get<std::int64_t>();
  const std::vector<float> values = reader.get_list<float>();
  const std::int64_t extents[] = {rows, vocabulary};
  const auto count =
      rows >= 0 && vocabulary >= 0 && logits.position >= 0 ? tensor::checked_count(extents) : std::nullopt;
  if (!count || *count != std::ssize(values)) reader.refuse("has logits of another size than it announces");
  logits.rows = tensor::Tensor::empty({rows, vocabulary}, tensor::DType::kF32);
  if (!values.empty()) std::memcpy(logits.rows.mutable_raw(), values.data(), logits.rows.bytes());
  return logits;
}

RequestEnded get_ended(WireReader& reader) {
  RequestEnded ended{.id = reader.get<std::uint64_t>(), .reason = {}, .error = {}};
  const auto reason = reader.get<std::uint8_t>();
  if (reason > static_cast<std::uint8_t>(FinishReason::kCancelled)) reader.refuse("ends for an unknown reason");
  ended.reason = static_cast<FinishReason>(reason);
  return ended;
}

EngineEvent get_event(WireReader& reader) {
  switch (reader.get<EventKind>()) {
    case EventKind::kToken:
      return get_token(reader);
    case EventKind::kRead:
      return get_read(reader);
    case EventKind::kLogits:
      return get_logits(reader);
    case EventKind::kEnded:
      return get_ended(reader);
    case EventKind::kStep:
      return get_step(reader);
    case EventKind::kJson:
      return event_from_json(parse_json(reader.get_text(), "a message"));
  }
  reader.refuse("is of an unknown kind");
}

// ---- what the client says

void put_message(WireWriter& writer, const Request& request) {
  writer.put(ClientKind::kRequest);
  put_request(writer, request);
}
void put_message(WireWriter& writer, const CancelRequest& cancel) {
  writer.put(ClientKind::kCancel);
  writer.put(cancel.id);
}
void put_message(WireWriter& writer, const AccountRequest&) { writer.put(ClientKind::kAccount); }
void put_message(WireWriter&, const RefusedRequest&) { YOKE_CHECK(false, "what was refused is not sent on"); }

ClientMessage get_message(WireReader& reader) {
  ClientMessage message;
  const auto kind = reader.get<ClientKind>();
  if (kind == ClientKind::kRequest) {
    message = get_request(reader);
  } else if (kind == ClientKind::kCancel) {
    message = CancelRequest{reader.get<std::uint64_t>()};
  } else if (kind == ClientKind::kAccount) {
    message = AccountRequest{};
  } else {
    reader.refuse("is of an unknown kind");
  }
  reader.expect_end();
  return message;
}

}  // namespace

std::string encode(const ClientMessage& message) {
  std::string payload;
  WireWriter writer(payload);
  std::visit([&](const auto& one) { put_message(writer, one); }, message);
  return framed(payload);
}

std::string encode(std::span<const EngineEvent> events) {
  std::string payload;
  WireWriter writer(payload);
  for (const EngineEvent& event : events) std::visit([&](const auto& one) { put_event(writer, one); }, event);
  return framed(payload);
}

std::optional<std::string_view> EngineMessageReader::next_payload(std::size_t most) {
  // Moved to the front rarely, so that many small messages in one piece cost no more than their bytes.
  if (begin_ == held_.size() || begin_ > (std::size_t{1} << 20)) {
    held_.erase(0, begin_);
    begin_ = 0;
  }
  const std::string_view rest = std::string_view(held_).substr(begin_);
  if (!kMagic.starts_with(rest.substr(0, kMagic.size()))) {
    throw Error(ErrorCode::kInvalid, "what came between client and engine is no message",
                "does a program of another version speak here?");
  }
  if (rest.size() < kHeaderSize) return std::nullopt;
  std::uint32_t size = 0;
  std::memcpy(&size, rest.data() + kMagic.size(), sizeof size);
  if (size > most) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("a message between client and engine claims {} bytes, more than {}", size, most));
  }
  if (rest.size() < kHeaderSize + size) return std::nullopt;
  begin_ += kHeaderSize + size;
  return rest.substr(kHeaderSize, size);
}

std::optional<ClientMessage> EngineMessageReader::next_client_message() {
  const auto payload = next_payload(kMaxClientPayload);
  if (!payload) return std::nullopt;
  WireReader reader(*payload, "a request");
  try {
    return get_message(reader);
  } catch (const Error& error) {
    std::uint64_t id = 0;  // follows the kind
    if (payload->size() >= 1 + sizeof id) std::memcpy(&id, payload->data() + 1, sizeof id);
    return RefusedRequest{id, error};
  }
}

std::optional<EngineEvent> EngineMessageReader::next_event() {
  while (events_.empty()) {
    const auto payload = next_payload(kMaxEnginePayload);
    if (!payload) return std::nullopt;
    WireReader reader(*payload, "a message of the engine");
    while (!reader.at_end()) events_.push_back(get_event(reader));
  }
  EngineEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace yoke::engine
