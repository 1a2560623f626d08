#include "yoke/link/ping_pong.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <span>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"

namespace yoke::link {

template <class Visitor>
void visit_fields(Visitor& visit, PingRound& round) {
  visit.required("size", round.size);
  visit.required("count", round.count);
  visit.required("warm_up", round.warm_up);
}

template <class Visitor>
void visit_fields(Visitor& visit, PingRequest& request) {
  visit.required("token", request.token);
  visit.required("from", request.from);
  visit.required("to", request.to);
  visit.required("rounds", request.rounds);
}

template <class Visitor>
void visit_fields(Visitor& visit, PingResult& result) {
  visit.required("size", result.size);
  visit.required("count", result.count);
  visit.required("min", result.min);
  visit.required("p50", result.p50);
  visit.required("p99", result.p99);
  visit.required("max", result.max);
}

template <class Visitor>
void visit_fields(Visitor& visit, PingOutcome& outcome) {
  visit.required("rows", outcome.rows);
  visit.required("messages", outcome.messages);
  visit.required("resent", outcome.resent);
}

namespace {

// Longer than the round trip of the largest message on the slowest rail that is worth measuring.
constexpr Seconds kAnswerLimit{2};
// Long enough for any answer on a healthy link, where waking a sleeper would be most of what is measured.
constexpr auto kSpin = std::chrono::microseconds(300);
// Who spun in vain stands perhaps on the very core that the other end needs: it then sleeps for some messages.
constexpr int kSleepsAfterFruitlessSpin = 8;
// A lost message costs a fifth of a second: a bad link shows in few of them.
constexpr Seconds kRoundLimit{1};
// In place of a message's number: the round is over.
constexpr std::int64_t kRoundEnd = -1;

// One end of the conversation.
class Talker {
 public:
  explicit Talker(Socket& socket) : socket_(socket) {}

  void send(std::span<const std::byte> message) {
    socket_.send_all(message, Deadline::after(kAnswerLimit));
    ++sent_;
  }

  void receive(std::span<std::byte> message) {
    const Deadline deadline = Deadline::after(kAnswerLimit);
    bool spins = sleeps_left_ == 0;
    if (!spins) --sleeps_left_;
    const Instant spin_end = real_clock().now() + kSpin;
    for (std::size_t done = 0; done < message.size();) {
      const ssize_t count = recv(socket_.fd(), message.data() + done, message.size() - done, 0);
      if (count > 0) {
        done += static_cast<std::size_t>(count);
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        throw Error(ErrorCode::kUnavailable, fmt::format("{} closed the connection in mid-message", socket_.peer()));
      } else if (!spins) {
        sleep(deadline);
      } else if (real_clock().now() > spin_end) {
        spins = false;
        sleeps_left_ = kSleepsAfterFruitlessSpin;
      }
    }
  }

  PingOutcome outcome() const { return {.rows = {}, .messages = sent_, .resent = retransmits_of(socket_)}; }

 private:
  void sleep(Deadline deadline) {
    pollfd waiting{socket_.fd(), POLLIN, 0};
    poll(&waiting, 1, deadline.poll_timeout_ms());
    if (!deadline.expired()) return;
    throw Error(ErrorCode::kTimeout,
                fmt::format("no answer from {} within {}", socket_.peer(), to_string(kAnswerLimit)),
                "large packets may be lost: compare the MTU of both ends");
  }

  Socket& socket_;
  int sleeps_left_ = 0;
  std::int64_t sent_ = 0;
};

Seconds percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return {sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1]};
}

// Asks, and takes the answer, which must be the question.
Seconds ask_once(Talker& talker, const std::string& peer, std::vector<std::byte>& question, std::int64_t number) {
  std::vector<std::byte> answer(question.size());
  std::memcpy(question.data(), &number, sizeof number);
  const Instant start = real_clock().now();
  talker.send(question);
  talker.receive(answer);
  const Seconds taken = to_seconds(real_clock().now() - start);
  if (question != answer) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} answered with other bytes than it was sent", peer),
                "the link damages data: do not use it");
  }
  return taken;
}

PingResult ping_round(Talker& talker, const std::string& peer, const PingRound& round) {
  std::vector<std::byte> question(static_cast<std::size_t>(round.size));
  const Deadline warm = Deadline::after(kRoundLimit);
  for (int i = 0; i < round.warm_up && !warm.expired(); ++i) ask_once(talker, peer, question, i);
  std::vector<double> times;
  const Deadline limit = Deadline::after(kRoundLimit);
  for (int i = 0; i < round.count && (times.empty() || !limit.expired()); ++i) {
    times.push_back(ask_once(talker, peer, question, i).value / 2);
  }
  ask_once(talker, peer, question, kRoundEnd);
  std::sort(times.begin(), times.end());
  return {.size = round.size,
          .count = static_cast<int>(times.size()),
          .min = {times.front()},
          .p50 = percentile(times, 0.5),
          .p99 = percentile(times, 0.99),
          .max = {times.back()}};
}

void check_rounds(const std::vector<PingRound>& rounds) {
  for (const PingRound& round : rounds) {
    if (round.size < 8 || round.size > (1 << 20) || round.count < 1 || round.warm_up < 0) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} messages of {} bytes cannot be timed", round.count, round.size));
    }
  }
}

}  // namespace

std::vector<PingRound> usual_ping_rounds() {
  // The first has both ends just started, on cores that a moment ago moved bytes for other phases.
  return {{.size = 8, .warm_up = 2000},
          {.size = 1 << 10},
          {.size = 4 << 10},
          {.size = 16 << 10, .count = 500},
          {.size = 64 << 10, .count = 300}};
}

PingOutcome ping(const PingRequest& request) {
  check_rounds(request.rounds);
  Socket socket = connect_on_rail(request.from, request.to, request.token, Deadline::after(kConnectLimit));
  Talker talker(socket);
  std::vector<PingResult> rows;
  for (const PingRound& round : request.rounds) rows.push_back(ping_round(talker, socket.peer(), round));
  PingOutcome outcome = talker.outcome();
  outcome.rows = std::move(rows);
  return outcome;
}

PingOutcome answer_pings(Socket& listener, const PingRequest& request) {
  check_rounds(request.rounds);
  Socket socket = accept_on_rail(listener, request.token, Deadline::after(kAcceptLimit));
  Talker talker(socket);
  for (const PingRound& round : request.rounds) {
    std::vector<std::byte> message(static_cast<std::size_t>(round.size));
    std::int64_t number = 0;
    while (number != kRoundEnd) {
      talker.receive(message);
      std::memcpy(&number, message.data(), sizeof number);
      talker.send(message);
    }
  }
  return talker.outcome();
}

Document to_json(const PingRequest& request) { return write_fields(request); }
void from_json(const Document& document, PingRequest& request) { read_fields(document, request); }
Document to_json(const PingResult& result) { return write_fields(result); }
Document to_json(const PingOutcome& outcome) { return write_fields(outcome); }
void from_json(const Document& document, PingOutcome& outcome) { read_fields(document, outcome); }

}  // namespace yoke::link
