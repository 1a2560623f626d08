// The receiving end of a copy: pieces come over several connections, are checked by their hash and written into
// FOLDER.partial; finish() gives them their names.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/link/rail_socket.h"
#include "yoke/sync/wire.h"

namespace yoke::sync {

// Where the pieces of a file are that need not be sent.
enum class Present { kNowhere, kPartial, kComplete };  // the last: under its name, some pieces perhaps other ones
constexpr auto enum_names(Present) {
  return std::array{std::pair{"nowhere", Present::kNowhere}, std::pair{"partial", Present::kPartial},
                    std::pair{"complete", Present::kComplete}};
}

Present find_present(const std::filesystem::path& folder, const FileSize& file);

struct ExpectedFile {
  FileSize file;
  Present present = Present::kNowhere;
  std::uint64_t bytes_to_come = 0;
};

struct ReceiverPlan {
  std::string folder;
  std::string token;  // shown by each connection
  std::vector<link::RailPlace> rails;
  int streams = 1;  // of each rail
  std::vector<ExpectedFile> files;
};

class Receiver {
 public:
  // Makes the partial files and listens. Throws Error(kExhausted) where the disk is too small.
  explicit Receiver(ReceiverPlan plan);

  std::vector<int> ports() const;  // one of each rail
  // Until every connection has ended. A connection that fails is the sender's affair, which knows what is missing; what
  // fails here (a full disk) is thrown.
  void receive();
  // Every file under its name; `folder` is there from now on.
  void finish();

 private:
  void prepare(const ExpectedFile& expected) const;
  void take_connections(Socket& listener);
  void take_pieces(Socket socket);
  void write_piece(const PieceHeader& header, const std::string& bytes);
  void fail(const Error& error);
  bool failed();

  ReceiverPlan plan_;
  std::filesystem::path folder_, partial_;
  std::vector<Socket> listeners_;
  std::mutex mutex_;
  std::optional<Error> failure_;
};

}  // namespace yoke::sync
