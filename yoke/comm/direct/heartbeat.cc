#include "yoke/comm/direct/heartbeat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace yoke::comm::direct {
namespace {

using namespace std::chrono_literals;
constexpr auto kHeartbeatInterval = 100ms;
// The sockets of a process that dies close one after the other: a moment later it is clear whether all do.
constexpr auto kEvaluateAfter = 20ms;
constexpr auto kMendEvery = 10ms;

}  // namespace

Heartbeat::Heartbeat(Health& health, std::vector<Path> paths, Options options)
    : health_(health), options_(std::move(options)) {
  const Instant now = real_clock().now();
  for (Path& path : paths) {
    PathHealth state;
    state.path = std::move(path);
    state.heard = now;
    if (!state.path.socket) {
      state.lost = state.ended = true;
      state.why = "it could not be connected";
    }
    paths_.push_back(std::move(state));
  }
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  stopping_ = true;
  health_.heartbeat_wakeup.ring();
  thread_.join();
}

void Heartbeat::expect_all() {
  expecting_all_ = true;
  health_.heartbeat_wakeup.ring();
}

std::string Heartbeat::rail_name(const Path& path) const {
  if (path.rail == kMemory) return "memory";
  return health_.member(path.peer).endpoints[static_cast<std::size_t>(path.rail)].rail;
}

std::string Heartbeat::describe_loss(const PathHealth& state) const {
  // A socket inside a node closes with its process, and is reset where beats of ours were still unread.
  const bool ended = state.why == "connection closed" || state.why == "connection reset";
  if (state.path.rail == kMemory) return ended ? "its process has ended" : state.why;
  // "no sign of life on rail B for 1.2 s", "connection closed on rail A"
  const std::string_view silent = "no sign of life";
  if (state.why.starts_with(silent)) {
    return fmt::format("{} on rail {}{}", silent, rail_name(state.path), state.why.substr(silent.size()));
  }
  return fmt::format("{} on rail {}", state.why, rail_name(state.path));
}

void Heartbeat::report(const PathEvent& event) const {
  if (!options_.on_path) return;
  try {
    options_.on_path(event);
  } catch (...) {  // Whatever the listener throws concerns the listener; the heartbeat must go on.
  }
}

void Heartbeat::send_heartbeat(HeartbeatKind kind) {
  const std::optional<Error> failure = kind == HeartbeatKind::kFailed ? health_.failure() : std::nullopt;
  const std::string heartbeat =
      encode_heartbeat(kind, static_cast<std::uint32_t>(health_.membership().epoch), health_.begun.load(),
                       health_.finished.load(), failure ? &*failure : nullptr);
  for (PathHealth& state : paths_) {
    if (state.lost || !state.path.socket) continue;
    const ssize_t count = send(state.path.socket.fd(), heartbeat.data(), heartbeat.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count == static_cast<ssize_t>(heartbeat.size()) || (count < 0 && (errno == EAGAIN || errno == EINTR))) continue;
    // Half a beat cannot be taken back; a socket that is so full carries nothing any more.
    lose(state, count < 0 && errno != EPIPE ? std::strerror(errno) : "connection closed");
  }
}

void Heartbeat::report_failure() {
  if (failure_reported_ || !health_.failed()) return;
  failure_reported_ = true;
  send_heartbeat(HeartbeatKind::kFailed);
}

void Heartbeat::lose(PathHealth& state, std::string why) {
  if (state.lost) return;
  state.lost = true;
  state.why = std::move(why);
  state.lost_at = real_clock().now();
}

void Heartbeat::listen(PathHealth& state) {
  for (;;) {
    const std::size_t had = state.bytes.size();
    state.bytes.resize(had + 4096);
    const ssize_t count = recv(state.path.socket.fd(), state.bytes.data() + had, 4096, MSG_DONTWAIT);
    const int failure = errno;
    state.bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0) {
      take_heartbeats(state);
      if (state.ended) return;
      continue;
    }
    if (count < 0 && failure == EINTR) continue;
    if (count < 0 && failure == EAGAIN) return;
    state.ended = true;
    const bool closed = count == 0 || failure == EPIPE;
    return lose(state, closed                  ? "connection closed"
                       : failure == ECONNRESET ? "connection reset"
                                               : std::strerror(failure));
  }
}

void Heartbeat::take_heartbeats(PathHealth& state) {
  std::size_t taken = 0;
  for (;;) {
    const auto rest = std::span<const std::byte>(state.bytes).subspan(taken);
    const std::optional<std::size_t> size = heartbeat_size(rest);
    if (!size) {
      state.ended = true;
      return lose(state, "what came was no heartbeat");
    }
    if (*size == 0) break;
    hear(state, decode_heartbeat(rest.first(*size)));
    taken += *size;
  }
  state.bytes.erase(state.bytes.begin(), state.bytes.begin() + static_cast<std::ptrdiff_t>(taken));
}

void Heartbeat::hear(PathHealth& state, const HeartbeatFrame& heartbeat) {
  state.heard = real_clock().now();
  state.heard_once = true;
  PeerHealth& peer = health_.peer(state.path.peer);
  peer.begun = std::max(peer.begun.load(), heartbeat.header.begun);
  peer.finished = std::max(peer.finished.load(), heartbeat.header.finished);
  if (heartbeat.header.kind == HeartbeatKind::kFailed) {
    health_.fail(failure_of(heartbeat).in(fmt::format("reported by {}", health_.name(state.path.peer))));
  } else if (heartbeat.header.kind == HeartbeatKind::kGoodbye) {
    peer.left = true;
    health_.caller_wakeup.ring();
  }
}

void Heartbeat::check_silence(Instant now) {
  for (PathHealth& state : paths_) {
    if (state.lost || (!state.heard_once && !expecting_all_)) continue;
    const Seconds silence = to_seconds(now - state.heard);
    if (silence > options_.silence_limit) lose(state, fmt::format("no sign of life for {:.1f} s", silence.value));
  }
}

void Heartbeat::lose_rail(PathHealth& state) {
  state.path.socket.close();  // so that the peer gives it up too
  health_.peer(state.path.peer).lost.fetch_or(1U << state.path.rail, std::memory_order_release);
  health_.caller_wakeup.ring();
  mending_ = true;
  report({PathEvent::Kind::kRailLost, state.path.peer, rail_name(state.path), state.why});
}

void Heartbeat::lose_peer(int peer) {
  std::vector<std::string> reasons;
  for (const PathHealth& state : paths_) {
    if (state.path.peer == peer) reasons.push_back(describe_loss(state));
  }
  const std::string why = fmt::format("{}", fmt::join(reasons, ", "));
  const bool first = !health_.failed();
  health_.fail(Error(ErrorCode::kUnavailable, fmt::format("{} is gone: {}", health_.name(peer), why),
                     "start the rank again and rebuild the group, or go on without it"));
  if (first) report({PathEvent::Kind::kPeerLost, peer, {}, why});
}

// Decides about the losses that are old enough; true where some are not yet. A socket that has ended has told all; what
// another one says, such as a goodbye, may still be on its way.
bool Heartbeat::evaluate(Instant now) {
  bool waiting = false;
  for (PathHealth& state : paths_) {
    if (!state.lost || state.reported) continue;
    const int peer = state.path.peer;
    const auto all = [&](auto is) {
      return std::ranges::all_of(paths_, [&](const PathHealth& p) { return p.path.peer != peer || is(p); });
    };
    const bool all_lost = all([](const PathHealth& p) { return p.lost; });
    if (now - state.lost_at < kEvaluateAfter && !all([](const PathHealth& p) { return p.ended; })) {
      waiting = true;
      continue;
    }
    state.reported = true;
    if (health_.peer(peer).left) continue;
    if (!all_lost) {
      lose_rail(state);
      continue;
    }
    for (PathHealth& other : paths_) other.reported |= other.path.peer == peer;
    lose_peer(peer);
  }
  return waiting;
}

void Heartbeat::run() {
  std::vector<pollfd> waits;
  Instant next_heartbeat = real_clock().now();
  Instant awake = next_heartbeat;
  while (!stopping_) {
    const Instant now = real_clock().now();
    // A thread that was itself stopped or starved has no right to call others silent.
    if (now - awake > 3 * kHeartbeatInterval) {
      for (PathHealth& state : paths_) state.heard += now - awake;
    }
    awake = now;
    report_failure();
    if (now >= next_heartbeat) {
      send_heartbeat(HeartbeatKind::kAlive);
      next_heartbeat = now + kHeartbeatInterval;
    }
    for (const PathLoss& loss : health_.take_reports()) {
      for (PathHealth& state : paths_) {
        if (state.path.peer == loss.peer && state.path.rail == loss.rail) lose(state, loss.why);
      }
    }
    check_silence(now);
    const bool soon = evaluate(now);
    report_failure();
    if (mending_ && options_.mend) mending_ = !options_.mend();

    waits.assign(1, {health_.heartbeat_wakeup.fd(), POLLIN, 0});
    for (const PathHealth& state : paths_) {
      waits.push_back({state.ended || state.reported ? -1 : state.path.socket.fd(), POLLIN, 0});
    }
    const auto patience = soon || mending_ ? std::chrono::nanoseconds(kMendEvery) : next_heartbeat - now;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
    poll(waits.data(), waits.size(), static_cast<int>(std::clamp<long>(ms, 0, 100)));
    if (waits[0].revents != 0) health_.heartbeat_wakeup.clear();
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (waits[i + 1].revents != 0) listen(paths_[i]);
    }
  }
  report_failure();
  if (!health_.failed()) send_heartbeat(HeartbeatKind::kGoodbye);
  // A socket that is closed with something unread in it is reset, which could overtake the goodbye.
  for (PathHealth& state : paths_) {
    if (!state.ended && state.path.socket) listen(state);
  }
}

}  // namespace yoke::comm::direct
