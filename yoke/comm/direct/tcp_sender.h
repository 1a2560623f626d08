// The sending side of a TCP channel: cuts a message into frames and gives each to a rail that can take it. What a
// socket does not take at once is copied, so the caller's bytes are free as soon as they are framed. While another
// rail could take over, frames are kept until acknowledged. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "yoke/comm/direct/data_path.h"
#include "yoke/comm/direct/retained.h"
#include "yoke/comm/direct/wire.h"

namespace yoke::comm::direct {

// The same on all ranks of a group, so that a receiver knows which frames to expect.
struct LinkTuning {
  std::size_t stripe_from = SIZE_MAX;                            // a message of so many bytes goes over all rails
  static constexpr std::size_t kFrame = std::size_t{128} << 10;  // at most, message header included

  bool striped(std::size_t size, std::size_t rails) const { return rails > 1 && size >= stripe_from; }
};

class TcpSender {
 public:
  TcpSender(std::vector<DataPath>& paths, const LinkTuning& tuning, std::uint32_t epoch);

  void begin(const MessageHeader& header, const std::byte* payload);
  // True where anything moved. `received` is acknowledged by the way.
  bool push(std::uint64_t received);
  bool done() const { return framed_ == total_; }
  std::size_t sent() const { return framed_ < sizeof(MessageHeader) ? 0 : framed_ - sizeof(MessageHeader); }

  void acknowledged(std::uint64_t offset) { retained_.release_before(offset); }
  bool needs_acknowledgement() const { return starved_; }  // the store of kept frames is full
  bool send_acknowledgement(std::uint64_t received);       // false where no rail takes it now
  std::uint64_t last_acknowledgement() const { return last_acknowledgement_; }

  void lose(std::size_t rail);
  bool backlog() const;                // something framed is still to be sent
  bool wants(std::size_t rail) const;  // to hear when the socket takes more

 private:
  // A frame that its socket took in part.
  struct Rest {
    FrameHeader header;
    const std::byte* bytes = nullptr;
    std::size_t written = 0;  // of header and bytes
    bool open = false;
    std::vector<std::byte> own;
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  bool retains() const;
  std::size_t live_count() const;
  std::size_t choose_rail();
  bool flush_rests();
  bool send_lost();
  bool send_frame(std::size_t rail, std::size_t size);
  void keep_rest(std::size_t rail, const FrameHeader& header, std::size_t written, std::size_t size);
  FrameHeader header_for(std::uint64_t offset, std::size_t size);
  std::size_t write(std::size_t rail, std::span<iovec> parts);
  void copy_message(std::size_t from, std::size_t size, std::byte* to) const;

  std::vector<DataPath>& paths_;
  const LinkTuning& tuning_;
  const std::uint32_t epoch_;
  std::vector<Rest> rests_;
  std::vector<bool> full_;  // took nothing in this push
  Retained retained_;

  MessageHeader message_;
  const std::byte* payload_ = nullptr;
  std::uint64_t stream_ = 0;            // where the message begins in the stream
  std::size_t total_ = 0, framed_ = 0;  // bytes of header and payload
  bool striped_ = false, starved_ = false;
  std::size_t next_rail_ = 0;
  std::uint64_t received_ = 0, last_acknowledgement_ = 0;
};

}  // namespace yoke::comm::direct
