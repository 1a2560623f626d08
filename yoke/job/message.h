// Messages between the head of a job, the supervisors of its nodes, and the ranks: frames on a byte stream.
//
//   magic "YKJ\x01" | u32 length of the payload, little-endian | u8 type | payload
//
// Payloads are JSON (job_messages.h) but for output, which is bytes. Frames are taken as agent/frame_buffer.h says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/agent/frame_buffer.h"

namespace yoke::job {

// The values are the protocol: they are never given a new meaning.
enum class MessageType : std::uint8_t {
  kHello = 1,       // both ways, first
  kHeartbeat = 2,   // both ways
  kStart = 3,       // head → supervisor: the ranks to start
  kCredit = 4,      // head → supervisor: so many bytes of output were taken
  kAbort = 5,       // head → supervisor → rank: why the group is no more
  kMembership = 6,  // head → supervisor → rank
  kRestart = 7,     // head → supervisor: end what is left of these ranks, and start them again
  kStop = 8,        // head → supervisor: end all ranks, then yourself; → rank: why the job ends
  kStarted = 9,     // supervisor → head
  kOutput = 10,     // supervisor → head: OutputHeader, then bytes
  kEnded = 11,      // supervisor → head: how a rank ended; its output may still come
  kClosed = 12,     // supervisor → head: all output of a rank was sent, nothing of it is left
  kStopped = 13,    // supervisor → head: a rank stands still (SIGSTOP)
  kFailed = 14,     // supervisor → head: it cannot do its work
  kGone = 15,       // supervisor → head: the last message, nothing is left
  kJoin = 16,       // rank → supervisor → head: where this rank listens
  kPath = 17,       // rank → supervisor → head: a rail or a peer is lost, or back
  kReady = 18,      // rank → supervisor → head
  kNodeState = 19,  // supervisor → head, every second where the start asks for it
};

struct Message {
  MessageType type = MessageType::kHeartbeat;
  std::string payload = {};
  friend bool operator==(const Message&, const Message&) = default;
};

inline constexpr std::size_t kMessageHeaderSize = 9;
// A membership of 1,000 ranks takes about 200 KB; output comes in smaller pieces.
inline constexpr std::size_t kMaxMessagePayload = 1 << 20;

std::string encode(const Message& message);

class MessageReader {
 public:
  MessageReader();
  void feed(std::string_view data) { buffer_.feed(data); }
  std::optional<Message> next();  // as FrameBuffer's

 private:
  agent::FrameBuffer buffer_;
};

// Output of a rank, in front of its bytes.
struct OutputPiece {
  int rank = 0;
  int stream = 1;  // 1 or 2, as descriptors have it
  std::string bytes = {};
};
Message output_message(int rank, int stream, std::string_view bytes);
OutputPiece read_output(const Message& message);  // throws Error(kInvalid)

}  // namespace yoke::job
