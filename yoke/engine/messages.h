// Requests and events as bytes on a stream between a Front and rank 0:
//
//   magic "YKE\x01" | u32 bytes of the head | u32 bytes of the body, little-endian | head (JSON) | body (logits)
//
// The reader takes what comes in pieces of any size; what is no message is Error(kInvalid), again and again: a stream
// that lost its step does not find it back. Plain data: a reader belongs to one thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "yoke/base/document.h"
#include "yoke/engine/request.h"

namespace yoke {

struct CancelRequest {
  std::uint64_t id = 0;
};
using FrontMessage = std::variant<Request, CancelRequest>;

std::string encode(const FrontMessage& message);
std::string encode(const EngineEvent& event);

// A prompt of a million tokens has a head of about 8 MB.
inline constexpr std::size_t kEngineHeadMost = 64 << 20;

class EngineMessageReader {
 public:
  void feed(std::string_view data) { held_ += data; }
  // The next whole one; nothing where more must come.
  std::optional<FrontMessage> next_front_message();
  std::optional<EngineEvent> next_event();

 private:
  struct Parts {
    std::string_view head;
    std::string_view body;
  };
  std::optional<Parts> next();  // good until the next call of feed() or next()

  std::string held_;
  std::size_t begin_ = 0;  // what lies before was taken
};

// A request alone, for the plans that rank 0 gives to the others.
Document to_json(const Request& request);
Request request_from_json(const Document& document);

}  // namespace yoke
