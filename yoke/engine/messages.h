// Requests and events as bytes on a stream between an EngineConnection and rank 0, in frames:
//
//   magic "YKE\x02" | u32 bytes of the payload, little-endian | payload
//
// From the client a payload is one request or cancellation. From the engine it is all events of a step, one after the
// other; tokens take a few bytes, what is rare (loading, errors) is JSON. The reader takes what comes in pieces of any
// size. A payload that is no message costs only itself: from the client it comes out as a RefusedRequest. What is no
// frame is Error(kInvalid), again and again: a stream that lost its step does not find it back. Plain data: a reader
// belongs to one thread.
#pragma once
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "yoke/engine/request.h"

namespace yoke::engine {

struct CancelRequest {
  std::uint64_t id = 0;
};
// A message of the client that cannot be read, as far as it tells whose it was.
struct RefusedRequest {
  std::uint64_t id = 0;
  Error error;
};
// What were the steps so far made of? EngineAccount answers.
struct AccountRequest {};
using ClientMessage = std::variant<Request, CancelRequest, AccountRequest, RefusedRequest>;

std::string encode(const ClientMessage& message);
std::string encode(std::span<const EngineEvent> events);  // one frame
inline std::string encode(const EngineEvent& event) { return encode(std::span(&event, 1)); }

// From the client: a prompt of a million tokens takes 4 MB. From the engine: the logits of a step.
inline constexpr std::size_t kMaxEnginePayload = std::size_t{512} << 20;
inline constexpr std::size_t kMaxClientPayload = std::size_t{64} << 20;

class EngineMessageReader {
 public:
  void feed(std::string_view data) { held_ += data; }
  // The next whole one; nothing where more must come.
  std::optional<ClientMessage> next_client_message();
  std::optional<EngineEvent> next_event();

 private:
  std::optional<std::string_view> next_payload(std::size_t most);  // good until the next call of feed() or this

  std::string held_;
  std::size_t begin_ = 0;           // what lies before was taken
  std::deque<EngineEvent> events_;  // of the last frame
};

}  // namespace yoke::engine
