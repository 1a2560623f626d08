#include "yoke/comm/direct/heart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace yoke::direct {
namespace {

using namespace std::chrono_literals;
constexpr auto kBeatEvery = 100ms;
// The sockets of a process that dies close one after the other: a moment later it is clear whether all do.
constexpr auto kJudgeAfter = 20ms;
constexpr auto kMendEvery = 10ms;

}  // namespace

Heart::Heart(Vitals& vitals, std::vector<Path> paths, Options options) : vitals_(vitals), options_(std::move(options)) {
  const Instant now = real_clock().now();
  for (Path& path : paths) {
    Pulse pulse;
    pulse.path = std::move(path);
    pulse.heard = now;
    if (!pulse.path.socket) {
      pulse.lost = pulse.ended = true;
      pulse.why = "it could not be connected";
    }
    pulses_.push_back(std::move(pulse));
  }
  thread_ = std::thread([this] { run(); });
}

Heart::~Heart() {
  stopping_ = true;
  vitals_.heart_bell.ring();
  thread_.join();
}

void Heart::expect_all() {
  expecting_all_ = true;
  vitals_.heart_bell.ring();
}

std::string Heart::half_name(const Path& path) const {
  if (path.half == kMemory) return "memory";
  return vitals_.member(path.peer).endpoints[static_cast<std::size_t>(path.half)].half;
}

std::string Heart::describe_loss(const Pulse& pulse) const {
  // A socket inside a node closes with its process, and is reset where beats of ours were still unread.
  const bool ended = pulse.why == "connection closed" || pulse.why == "connection reset";
  if (pulse.path.half == kMemory) return ended ? "its process has ended" : pulse.why;
  // "no sign of life on half B for 1.2 s", "connection closed on half A"
  const std::string_view silent = "no sign of life";
  if (pulse.why.starts_with(silent)) {
    return fmt::format("{} on half {}{}", silent, half_name(pulse.path), pulse.why.substr(silent.size()));
  }
  return fmt::format("{} on half {}", pulse.why, half_name(pulse.path));
}

void Heart::report(const PathEvent& event) const {
  if (!options_.on_path) return;
  try {
    options_.on_path(event);
  } catch (...) {  // Whatever the listener throws concerns the listener; the heart must go on.
  }
}

void Heart::say(BeatKind kind) {
  const std::optional<Error> failure = kind == BeatKind::kFailed ? vitals_.failure() : std::nullopt;
  const std::string beat = encode_beat(kind, static_cast<std::uint32_t>(vitals_.membership().epoch),
                                       vitals_.begun.load(), vitals_.finished.load(), failure ? &*failure : nullptr);
  for (Pulse& pulse : pulses_) {
    if (pulse.lost || !pulse.path.socket) continue;
    const ssize_t count = send(pulse.path.socket.fd(), beat.data(), beat.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count == static_cast<ssize_t>(beat.size()) || (count < 0 && (errno == EAGAIN || errno == EINTR))) continue;
    // Half a beat cannot be taken back; a socket that is so full carries nothing any more.
    lose(pulse, count < 0 && errno != EPIPE ? std::strerror(errno) : "connection closed");
  }
}

void Heart::tell_failure() {
  if (failure_told_ || !vitals_.failed()) return;
  failure_told_ = true;
  say(BeatKind::kFailed);
}

void Heart::lose(Pulse& pulse, std::string why) {
  if (pulse.lost) return;
  pulse.lost = true;
  pulse.why = std::move(why);
  pulse.lost_at = real_clock().now();
}

void Heart::listen(Pulse& pulse) {
  for (;;) {
    const std::size_t had = pulse.bytes.size();
    pulse.bytes.resize(had + 4096);
    const ssize_t count = recv(pulse.path.socket.fd(), pulse.bytes.data() + had, 4096, MSG_DONTWAIT);
    const int failure = errno;
    pulse.bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0) {
      take_beats(pulse);
      if (pulse.ended) return;
      continue;
    }
    if (count < 0 && failure == EINTR) continue;
    if (count < 0 && failure == EAGAIN) return;
    pulse.ended = true;
    const bool closed = count == 0 || failure == EPIPE;
    return lose(pulse, closed                  ? "connection closed"
                       : failure == ECONNRESET ? "connection reset"
                                               : std::strerror(failure));
  }
}

void Heart::take_beats(Pulse& pulse) {
  std::size_t taken = 0;
  for (;;) {
    const auto rest = std::span<const std::byte>(pulse.bytes).subspan(taken);
    const std::optional<std::size_t> size = beat_size(rest);
    if (!size) {
      pulse.ended = true;
      return lose(pulse, "what came was no heartbeat");
    }
    if (*size == 0) break;
    hear(pulse, decode_beat(rest.first(*size)));
    taken += *size;
  }
  pulse.bytes.erase(pulse.bytes.begin(), pulse.bytes.begin() + static_cast<std::ptrdiff_t>(taken));
}

void Heart::hear(Pulse& pulse, const Beat& beat) {
  pulse.heard = real_clock().now();
  pulse.heard_once = true;
  PeerVitals& peer = vitals_.peer(pulse.path.peer);
  peer.begun = std::max(peer.begun.load(), beat.header.begun);
  peer.finished = std::max(peer.finished.load(), beat.header.finished);
  if (beat.header.kind == BeatKind::kFailed) {
    vitals_.fail(failure_of(beat).in(fmt::format("told by {}", vitals_.name(pulse.path.peer))));
  } else if (beat.header.kind == BeatKind::kGoodbye) {
    peer.left = true;
    vitals_.caller_bell.ring();
  }
}

void Heart::look_for_silence(Instant now) {
  for (Pulse& pulse : pulses_) {
    if (pulse.lost || (!pulse.heard_once && !expecting_all_)) continue;
    const Seconds silence = to_seconds(now - pulse.heard);
    if (silence > options_.silence_limit) lose(pulse, fmt::format("no sign of life for {:.1f} s", silence.value));
  }
}

void Heart::lose_half(Pulse& pulse) {
  pulse.path.socket.close();  // so that the peer gives it up too
  vitals_.peer(pulse.path.peer).lost.fetch_or(1U << pulse.path.half, std::memory_order_release);
  vitals_.caller_bell.ring();
  mending_ = true;
  report({PathEvent::Kind::kHalfLost, pulse.path.peer, half_name(pulse.path), pulse.why});
}

void Heart::lose_peer(int peer) {
  std::vector<std::string> reasons;
  for (const Pulse& pulse : pulses_) {
    if (pulse.path.peer == peer) reasons.push_back(describe_loss(pulse));
  }
  const std::string why = fmt::format("{}", fmt::join(reasons, ", "));
  const bool first = !vitals_.failed();
  vitals_.fail(Error(ErrorCode::kUnavailable, fmt::format("{} is gone: {}", vitals_.name(peer), why),
                     "start the rank again and rebuild the group, or go on without it"));
  if (first) report({PathEvent::Kind::kPeerLost, peer, {}, why});
}

// Decides about the losses that are old enough; true where some are not yet. A socket that has ended has told all; what
// another one says, such as a goodbye, may still be on its way.
bool Heart::judge(Instant now) {
  bool waiting = false;
  for (Pulse& pulse : pulses_) {
    if (!pulse.lost || pulse.told) continue;
    const int peer = pulse.path.peer;
    const auto all = [&](auto is) {
      return std::ranges::all_of(pulses_, [&](const Pulse& p) { return p.path.peer != peer || is(p); });
    };
    const bool all_lost = all([](const Pulse& p) { return p.lost; });
    if (now - pulse.lost_at < kJudgeAfter && !all([](const Pulse& p) { return p.ended; })) {
      waiting = true;
      continue;
    }
    pulse.told = true;
    if (vitals_.peer(peer).left) continue;
    if (!all_lost) {
      lose_half(pulse);
      continue;
    }
    for (Pulse& other : pulses_) other.told |= other.path.peer == peer;
    lose_peer(peer);
  }
  return waiting;
}

void Heart::run() {
  std::vector<pollfd> waits;
  Instant next_beat = real_clock().now();
  Instant awake = next_beat;
  while (!stopping_) {
    const Instant now = real_clock().now();
    // A thread that was itself stopped or starved has no right to call others silent.
    if (now - awake > 3 * kBeatEvery) {
      for (Pulse& pulse : pulses_) pulse.heard += now - awake;
    }
    awake = now;
    tell_failure();
    if (now >= next_beat) {
      say(BeatKind::kAlive);
      next_beat = now + kBeatEvery;
    }
    for (const PathLoss& loss : vitals_.take_reports()) {
      for (Pulse& pulse : pulses_) {
        if (pulse.path.peer == loss.peer && pulse.path.half == loss.half) lose(pulse, loss.why);
      }
    }
    look_for_silence(now);
    const bool soon = judge(now);
    tell_failure();
    if (mending_ && options_.mend) mending_ = !options_.mend();

    waits.assign(1, {vitals_.heart_bell.fd(), POLLIN, 0});
    for (const Pulse& pulse : pulses_) {
      waits.push_back({pulse.ended || pulse.told ? -1 : pulse.path.socket.fd(), POLLIN, 0});
    }
    const auto patience = soon || mending_ ? std::chrono::nanoseconds(kMendEvery) : next_beat - now;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
    poll(waits.data(), waits.size(), static_cast<int>(std::clamp<long>(ms, 0, 100)));
    if (waits[0].revents != 0) vitals_.heart_bell.hush();
    for (std::size_t i = 0; i < pulses_.size(); ++i) {
      if (waits[i + 1].revents != 0) listen(pulses_[i]);
    }
  }
  tell_failure();
  if (!vitals_.failed()) say(BeatKind::kGoodbye);
  // A socket that is closed with something unread in it is reset, which could overtake the goodbye.
  for (Pulse& pulse : pulses_) {
    if (!pulse.ended && pulse.path.socket) listen(pulse);
  }
}

}  // namespace yoke::direct
