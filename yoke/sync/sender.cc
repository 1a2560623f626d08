#include "yoke/sync/sender.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/sync/wire.h"

namespace yoke::sync {
namespace {

constexpr Seconds kPieceLimit{60};    // for a piece to leave, and for the word that it arrived
constexpr std::size_t kUnderWay = 2;  // pieces on a connection without that word
constexpr int kMaxTries = 4;          // of one piece

struct Piece {
  std::uint32_t file;
  std::uint64_t number;
  friend auto operator<=>(const Piece&, const Piece&) = default;
};

// The pieces to send, shared by all connections.
class PieceQueue {
 public:
  explicit PieceQueue(const std::vector<FileToSend>& files) {
    for (std::uint32_t file = 0; file < files.size(); ++file) {
      for (const PieceRange& range : files[file].pieces) {
        for (std::uint64_t i = 0; i < range.count; ++i) waiting_.push_back({file, range.first + i});
      }
    }
  }

  // Nothing: all have arrived. Waits where all are under way, as one may come back.
  std::optional<Piece> next() {
    std::unique_lock lock(mutex_);
    while (waiting_.empty() && under_way_ > 0) changed_.wait_for(lock, std::chrono::milliseconds(100));
    return take();
  }
  std::optional<Piece> next_if_waiting() {
    const std::lock_guard lock(mutex_);
    return take();
  }
  void arrived() {
    const std::lock_guard lock(mutex_);
    --under_way_;
    changed_.notify_all();
  }
  void put_back(const Piece& piece) {
    const std::lock_guard lock(mutex_);
    --under_way_;
    waiting_.push_front(piece);
    changed_.notify_all();
  }
  int count_damage(const Piece& piece) {
    const std::lock_guard lock(mutex_);
    ++damaged_;
    return ++tries_[piece];
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty() && under_way_ == 0;
  }
  std::uint64_t damaged() {
    const std::lock_guard lock(mutex_);
    return damaged_;
  }

 private:
  std::optional<Piece> take() {
    if (waiting_.empty()) return std::nullopt;
    const Piece piece = waiting_.front();
    waiting_.pop_front();
    ++under_way_;
    return piece;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> waiting_;
  std::size_t under_way_ = 0;
  std::map<Piece, int> tries_;
  std::uint64_t damaged_ = 0;
};

// One connection. What it has under way when it ends early goes back into the queue.
class Stream {
 public:
  Stream(const SenderPlan& plan, const SendingRail& rail, PieceQueue& queue,
         std::function<void(std::uint64_t)> on_arrived)
      : plan_(plan), rail_(rail), queue_(queue), on_arrived_(std::move(on_arrived)) {}
  ~Stream() {
    for (const Piece& piece : under_way_) queue_.put_back(piece);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void run() {
    socket_ = link::connect_on_rail(rail_.from, rail_.to, plan_.token, Deadline::after(link::kConnectLimit));
    while (true) {
      throw_if_interrupted();
      const auto piece = under_way_.empty() ? queue_.next() : queue_.next_if_waiting();
      if (piece) {
        under_way_.push_back(*piece);
        send(*piece);
      } else if (under_way_.empty()) {
        break;
      }
      if (!piece || under_way_.size() >= kUnderWay) await_oldest();
    }
    socket_.send_all(encode(PieceHeader{.file = kNoMorePieces}), Deadline::after(kPieceLimit));
  }

 private:
  void send(const Piece& piece) {
    const FileSize& file = plan_.files[piece.file].file;
    if (open_ != piece.file) fd_ = open_file(std::filesystem::path(plan_.folder) / file.path, O_RDONLY);
    open_ = piece.file;
    read_piece(fd_, file, piece.number, bytes_);
    const Deadline deadline = Deadline::after(kPieceLimit);
    socket_.send_all(encode({.file = piece.file,
                             .piece = piece.number,
                             .length = static_cast<std::uint32_t>(bytes_.size()),
                             .hash = piece_hash(bytes_)}),
                     deadline);
    socket_.send_all(bytes_, deadline);
  }

  void await_oldest() {
    char word = 0;
    socket_.receive_exact(std::as_writable_bytes(std::span(&word, 1)), Deadline::after(kPieceLimit));
    const Piece piece = under_way_.front();
    const FileSize& file = plan_.files[piece.file].file;
    if (word == kPieceKept) {
      under_way_.pop_front();
      queue_.arrived();
      on_arrived_(piece_length(file.size, piece.number));
    } else if (queue_.count_damage(piece) < kMaxTries) {
      under_way_.pop_front();
      queue_.put_back(piece);
    } else {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("a piece of '{}' arrives damaged again and again at {}", printable(file.path, 80),
                              socket_.peer()),
                  "a cable, a NIC or memory changes bits: 'yoke check' looks at the error counters");
    }
  }

  const SenderPlan& plan_;
  const SendingRail& rail_;
  PieceQueue& queue_;
  std::function<void(std::uint64_t)> on_arrived_;
  Socket socket_;
  std::deque<Piece> under_way_;
  UniqueFd fd_;
  std::optional<std::uint32_t> open_;
  std::string bytes_;
};

}  // namespace

Sent send_pieces(const SenderPlan& plan, const std::function<void(std::uint64_t)>& on_progress) {
  Sent sent{.rails = std::vector<SentOverRail>(plan.rails.size())};
  PieceQueue queue(plan.files);
  std::mutex mutex;  // of `sent`, `failure` and `arrived`
  std::optional<Error> failure;
  std::uint64_t arrived = 0;
  const Instant start = real_clock().now();
  std::vector<std::thread> threads;
  for (std::size_t rail = 0; rail < plan.rails.size(); ++rail) {
    const auto count = [&, rail](std::uint64_t bytes) {
      const std::lock_guard lock(mutex);
      sent.rails[rail].bytes += bytes;
      arrived += bytes;
      if (on_progress) on_progress(arrived);
    };
    for (int i = 0; i < plan.streams; ++i) {
      threads.emplace_back([&, rail, count] {
        const auto done = try_to([&] { Stream(plan, plan.rails[rail], queue, count).run(); });
        if (done) return;
        const std::lock_guard lock(mutex);
        sent.rails[rail].problem = done.error().message();
        const bool grave = done.error().code() != ErrorCode::kUnavailable && done.error().code() != ErrorCode::kTimeout;
        if (!failure || grave) failure = done.error();
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  sent.time = to_seconds(real_clock().now() - start);
  sent.damaged = queue.damaged();
  if (!queue.empty()) throw Error(*failure);
  return sent;
}

}  // namespace yoke::sync
