// The sending end of a copy: pieces go out over several connections on every rail, whichever is free next. A piece
// counts once the receiver has it with the right hash; what a lost connection carried goes over the others.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/socket.h"
#include "yoke/link/rail_socket.h"
#include "yoke/sync/pieces.h"

namespace yoke::sync {

struct PieceRange {
  std::uint64_t first = 0, count = 0;
  friend bool operator==(const PieceRange&, const PieceRange&) = default;
};

struct FileToSend {
  FileSize file;
  std::vector<PieceRange> pieces;
};

struct SendingRail {
  link::RailPlace from;
  Endpoint to;
};

struct SenderPlan {
  std::string folder;
  std::string token;
  int streams = 1;  // of each rail
  std::vector<SendingRail> rails;
  std::vector<FileToSend> files;  // in the order of the receiver's plan
};

struct SentOverRail {
  std::uint64_t bytes = 0;
  std::string problem;  // why a connection on it ended early; empty: none did
};

struct Sent {
  std::vector<SentOverRail> rails;
  Seconds time{0};
  std::uint64_t damaged = 0;  // pieces that arrived with another hash and were sent again
};

// `on_progress` gets the bytes that have arrived so far, from several threads. Throws where no connection is left, or a
// piece arrives damaged again and again.
Sent send_pieces(const SenderPlan& plan, const std::function<void(std::uint64_t)>& on_progress = {});

}  // namespace yoke::sync
