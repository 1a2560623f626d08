#include "yoke/comm/rank_clock.h"

namespace yoke::comm {
namespace {

constexpr int kRounds = 32;  // some of them are not disturbed by other work of the machines

void send_number(Communicator& comm, std::int64_t number, int peer) {
  comm.enqueue({.kind = CollectiveKind::kSend,
                .send = &number,
                .count = sizeof number,
                .type = tensor::DType::kI8,
                .root = peer},
               tensor::Stream::cpu());
}

std::int64_t receive_number(Communicator& comm, int peer) {
  std::int64_t number = 0;
  comm.enqueue({.kind = CollectiveKind::kReceive,
                .receive = &number,
                .count = sizeof number,
                .type = tensor::DType::kI8,
                .root = peer},
               tensor::Stream::cpu());
  return number;
}

std::int64_t now() { return spec::nanoseconds(real_clock().now()); }

}  // namespace

spec::ClockMark compare_clock(Communicator& comm) {
  if (comm.rank() == 0) {
    for (int peer = 1; peer < comm.size(); ++peer) {
      for (int round = 0; round < kRounds; ++round) {
        receive_number(comm, peer);
        send_number(comm, now(), peer);
      }
    }
    return {.at = now()};
  }
  spec::ClockMark best{.error = INT64_MAX};
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t asked = now();
    send_number(comm, asked, 0);
    const std::int64_t there = receive_number(comm, 0);
    const std::int64_t answered = now();
    const std::int64_t error = (answered - asked + 1) / 2;
    const std::int64_t middle = asked + (answered - asked) / 2;
    if (error < best.error) best = {.at = middle, .offset = there - middle, .error = error};
  }
  return best;
}

}  // namespace yoke::comm
