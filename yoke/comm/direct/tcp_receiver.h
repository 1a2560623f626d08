// The receiving side of a TCP channel: puts frames, which may come by any rail, in any order between rails and more
// than once, into the message that is expected. A frame for later stays in its socket, or is stashed where something
// else behind it is needed: an earlier frame that was sent again, or an acknowledgement. Most messages come in one
// frame that can be predicted: then frame header, message header and payload are read by one call, each to its place.
// One thread at a time.
#pragma once
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "yoke/comm/direct/received_ranges.h"
#include "yoke/comm/direct/tcp_sender.h"

namespace yoke::comm::direct {

class TcpReceiver {
 public:
  TcpReceiver(std::vector<DataPath>& paths, const LinkTuning& tuning, std::uint32_t epoch);

  // The next message of the stream has `size` bytes; null: they are taken through window().
  void begin(std::size_t size, std::byte* destination);
  // True where anything moved. Frames beyond what is expected are stashed for `seeking_acknowledgement`.
  bool pull(bool seeking_acknowledgement);

  bool complete() const { return prefix() == end_ && (destination_ || consumed_ == size_); }
  // The header of the message, once it is there.
  const MessageHeader* header() const { return prefix() > begin_ || header_read_ ? &header_ : nullptr; }
  std::span<const std::byte> window() const;
  void consume(std::size_t size);

  std::uint64_t received() const { return prefix(); }           // all before it in the stream
  std::uint64_t acknowledged() const { return acknowledged_; }  // by the peer, of what we sent
  std::size_t frames_received() const { return frames_received_; }
  void lose(std::size_t rail);
  bool wants(std::size_t rail) const { return paths_[rail].live && !inputs_[rail].blocked; }

 private:
  struct Input {
    std::array<std::byte, sizeof(FrameHeader)> header_bytes{};
    std::size_t header_got = 0;
    bool has_frame = false;
    FrameHeader frame;
    std::uint64_t at = 0;  // the next byte of the frame
    bool is_reordered = false;
    std::vector<std::byte> reorder_buffer;  // of the whole frame
    std::vector<std::byte> spill;           // read already, behind a frame that was predicted wrongly
    std::size_t spilled = 0;                // of them taken
    bool blocked = false;                   // the frame has no place yet

    std::uint64_t end() const { return frame.offset + frame.length; }
  };
  enum class Target { kDestination, kReorderBuffer, kNowhere, kWait };
  static constexpr std::size_t kWindow = std::size_t{2} << 20;
  static constexpr std::size_t kHeader = sizeof(MessageHeader);
  static constexpr std::size_t kHeads = sizeof(FrameHeader) + kHeader;
  // Where a message has no destination. The heads lie right before the payload, as they come.
  struct alignas(64) Scratch {
    std::array<std::byte, kHeads> heads;
    std::array<std::byte, kWindow> window;
  };

  bool pull_rail(std::size_t rail);
  bool read_frame_header(std::size_t rail);
  bool can_predict(std::size_t rail) const;
  bool read_predicted(std::size_t rail);
  std::size_t read_heads_at_once(std::size_t rail, std::span<iovec> parts);
  bool take_frame(Input& input, std::size_t rail);
  bool read_payload(std::size_t rail);
  bool is_before_gap(const Input& input) const;
  Target target_of(const Input& input) const;
  std::size_t read(std::size_t rail, std::span<iovec> parts);
  std::size_t map(std::uint64_t at, std::size_t size, std::span<iovec> parts);
  void passed(Input& input);
  void finish_frame(Input& input);
  void deliver_reordered();
  std::uint64_t prefix() const { return ranges_.prefix(); }
  bool fits_window(std::uint64_t end) const { return destination_ || end <= begin_ + kHeader + consumed_ + kWindow; }

  std::vector<DataPath>& paths_;
  const LinkTuning& tuning_;
  const std::uint32_t epoch_;
  std::vector<Input> inputs_;
  std::vector<std::byte> discard_;

  // The expected message, in offsets of the stream. Before the first one nothing is expected.
  std::uint64_t begin_ = 0, end_ = 0;
  std::size_t size_ = 0, consumed_ = 0;
  std::byte* destination_ = nullptr;
  std::unique_ptr<Scratch> scratch_;
  MessageHeader header_;
  bool header_read_ = false, striped_ = false;

  ReceivedRanges ranges_;
  std::map<std::uint64_t, std::vector<std::byte>> reordered_;  // whole frames by offset
  std::size_t reordered_bytes_ = 0;                            // bytes of them and of those being read
  bool seeking_acknowledgement_ = false;
  std::uint64_t acknowledged_ = 0;
  std::size_t frames_received_ = 0;
  unsigned turns_ = 0;
};

}  // namespace yoke::comm::direct
