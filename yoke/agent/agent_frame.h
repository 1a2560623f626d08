// The one protocol between a command and the agent on a node (serve.h): frames with a kind, an id and a payload.
//
//   magic "YKA\x01" | u32 length of the payload | u8 kind | u32 id | payload
//
// The head numbers its questions; whatever belongs to one carries its id, so several may be under way. Payloads are
// JSON but for kBytes. Both ends are the same program, so there is no version to agree on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/agent/frame_buffer.h"
#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/base/process.h"

namespace yoke::agent {

// The values are the protocol.
enum class FrameKind : std::uint8_t {
  kHello = 1,      // agent → head, first: {"time": of its clock}
  kQuestion = 2,   // head → agent: {"action", "question"}
  kAnswer = 3,     // agent → head: the answer; of a channel how its program ended: {"exit_status"}
  kError = 4,      // agent → head: {"code", "message", "hint", "context"}
  kProgress = 5,   // agent → head: a text, while a question is under way
  kHeartbeat = 6,  // agent → head, while a question is under way: {"time": of its clock}
  kBytes = 7,      // both ways, of a channel: to the head a u8 (1 or 2, as descriptors have it), then bytes; to the
                   // agent only bytes, and none at all close the program's input
  kStop = 8,       // head → agent: end this channel's program; with id 0 whatever is under way, and yourself
};

struct AgentFrame {
  FrameKind kind = FrameKind::kHeartbeat;
  std::uint32_t id = 0;
  std::string payload = {};
  friend bool operator==(const AgentFrame&, const AgentFrame&) = default;
};

// The facts of a large server take about 200 KB.
inline constexpr std::size_t kMaxAgentPayload = 16 << 20;

std::string encode(const AgentFrame& frame);  // throws Error(kInvalid) for a payload beyond the limit

class AgentFrameReader {
 public:
  AgentFrameReader();
  void feed(std::string_view data) { buffer_.feed(data); }
  std::optional<AgentFrame> next();  // throws Error(kInvalid), as FrameBuffer does

 private:
  FrameBuffer buffer_;
};

struct AgentQuestion {
  std::string action;
  Document question;
};
AgentFrame question_frame(std::uint32_t id, std::string_view action, const Document& question);
AgentQuestion read_question(const AgentFrame& frame);  // throws Error(kInvalid)

AgentFrame answer_frame(std::uint32_t id, const Document& answer);
AgentFrame error_frame(std::uint32_t id, const Error& error);
// Of a kAnswer the answer; of a kError its Error is thrown. `where` is for the errors of what is no answer.
Document read_answer(const AgentFrame& frame, const std::string& where);

AgentFrame output_frame(std::uint32_t id, OutputStream stream, std::string_view bytes);
struct AgentOutput {
  OutputStream stream = OutputStream::kOut;
  std::string bytes = {};
};
AgentOutput read_output(const AgentFrame& frame);  // throws Error(kInvalid)

// kHello and kHeartbeat: the sender's clock, in seconds since 1970.
AgentFrame time_frame(FrameKind kind, double time);
double read_time(const AgentFrame& frame);  // throws Error(kInvalid)
double agent_clock_now();

}  // namespace yoke::agent
