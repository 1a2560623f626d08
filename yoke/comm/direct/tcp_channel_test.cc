// Two ends of a channel in one thread, with a wire between them that the test moves byte by byte, and cuts.
#include "yoke/comm/direct/tcp_channel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "yoke/base/rng_testing.h"

namespace yoke::comm::direct {
namespace {

struct Ends {
  Socket left, right;
};

Ends connected() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {Socket(UniqueFd(fds[0]), "left"), Socket(UniqueFd(fds[1]), "right")};
}

spec::Membership two_nodes(std::size_t rails) {
  spec::Membership membership{.epoch = 3, .token = "00", .members = {{"left", {}}, {"right", {}}}};
  for (spec::Member& member : membership.members) {
    for (std::size_t i = 0; i < rails; ++i)
      member.endpoints.push_back({std::string(1, static_cast<char>('A' + i)), "127.0.0.1", 1});
  }
  return membership;
}

// What one rail is made of: left's socket, the wire, right's socket.
class Wire {
 public:
  Wire() : a_(connected()), b_(connected()) {}
  Socket take_left() { return std::move(a_.left); }
  Socket take_right() { return std::move(b_.right); }
  void cut() { cut_ = true; }
  bool is_cut() const { return cut_; }
  void carry(std::size_t most) {
    if (cut_) return;
    carry(a_.right.fd(), b_.left.fd(), most, to_right_);
    carry(b_.left.fd(), a_.right.fd(), most, to_left_);
  }

 private:
  static void carry(int from, int to, std::size_t most, std::string& kept) {
    if (kept.empty()) {
      kept.resize(most);
      kept.resize(static_cast<std::size_t>(std::max<ssize_t>(recv(from, kept.data(), most, MSG_DONTWAIT), 0)));
    }
    const ssize_t count = send(to, kept.data(), kept.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) kept.erase(0, static_cast<std::size_t>(count));
  }
  Ends a_, b_;
  std::string to_right_, to_left_;
  bool cut_ = false;
};

struct Pair {
  explicit Pair(std::size_t rails, std::size_t stripe_from)
      : wires(rails), left_vitals(two_nodes(rails), 0), right_vitals(two_nodes(rails), 1) {
    tuning.stripe_from = stripe_from;
    std::vector<Socket> lefts, rights;
    for (Wire& wire : wires) {
      lefts.push_back(wire.take_left());
      rights.push_back(wire.take_right());
    }
    left = std::make_unique<TcpChannel>(left_vitals, 1, std::move(lefts), tuning);
    right = std::make_unique<TcpChannel>(right_vitals, 0, std::move(rights), tuning);
  }
  void lose(Health& health, int peer, std::size_t rail) { health.peer(peer).lost |= 1U << rail; }

  LinkTuning tuning;
  std::vector<Wire> wires;
  Health left_vitals, right_vitals;
  std::unique_ptr<TcpChannel> left, right;
};

std::vector<std::byte> pattern(std::uint64_t seed, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t word = (at + seed * 1'000'003) * 0x9e3779b97f4a7c15U;
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}

// The receiving end of a message that may be taken whole or through the window.
struct Taking {
  void begin(TcpChannel& channel, const MessageHeader& header, bool by_window) {
    got.assign(header.size, std::byte{0});
    windowed = by_window;
    taken = 0;
    channel.receive(header, by_window ? nullptr : got.data());
  }
  void advance(TcpChannel& channel) {
    while (windowed && channel.receiving()) {
      const std::span<const std::byte> window = channel.window();
      if (window.empty()) return;
      std::copy(window.begin(), window.end(), got.begin() + static_cast<std::ptrdiff_t>(taken));
      taken += window.size();
      channel.consume(window.size());
    }
  }
  std::vector<std::byte> got;
  bool windowed = false;
  std::size_t taken = 0;
};

MessageHeader header_of(std::uint32_t sequence, std::size_t size) {
  return {.sequence = sequence, .count = size, .size = size};
}

// One rank's end: sends and receives message after message, as far ahead of the other as it can.
struct End {
  static constexpr std::uint32_t kMessages = 20;

  End(TcpChannel& channel_at, std::uint64_t own_seed, std::uint64_t peer_seed)
      : channel(channel_at), sends(own_seed), receives(peer_seed), choices(own_seed * 7) {}

  static std::size_t size_of_message(std::uint32_t sequence) {
    const PhiloxBlock words = philox(sequence, 5);
    return words[0] % 3 == 0 ? words[1] % 700'000 : words[1] % 20'000;
  }
  bool done() const { return sequence == kMessages && !channel.sending() && !channel.receiving(); }
  void advance() {
    channel.advance();
    taking.advance(channel);
    if (channel.sending() || channel.receiving()) return;
    if (sequence > 0) {
      EXPECT_TRUE(taking.got == pattern(receives + sequence, taking.got.size())) << "message " << sequence;
    }
    if (sequence == kMessages) return;
    ++sequence;
    const std::size_t size = size_of_message(sequence);
    sent = pattern(sends + sequence, size);
    channel.send(header_of(sequence, size), sent.data());
    taking.begin(channel, header_of(sequence, size), choices.below(2) == 0);
  }

  TcpChannel& channel;
  std::uint64_t sends, receives;
  Random choices;
  std::uint32_t sequence = 0;
  std::vector<std::byte> sent;
  Taking taking;
};

// Messages both ways over wires that carry random amounts; at some moment all wires but one are cut, and each end gets
// to know of it at its own time.
void exchange_with_cuts(std::uint64_t seed, std::size_t rails) {
  Random random(seed);
  Pair pair(rails, 1 + random.below(300'000));
  End left(*pair.left, 100, 500), right(*pair.right, 500, 100);
  const std::size_t survivor = random.below(rails);
  const std::uint64_t cut_at = random.below(600);
  const std::uint64_t left_knows_at = cut_at + random.below(400), right_knows_at = cut_at + random.below(400);
  for (std::uint64_t turn = 0; !left.done() || !right.done(); ++turn) {
    ASSERT_LT(turn, 100'000U) << "nothing moves any more: seed " << seed << ", messages " << left.sequence << " and "
                              << right.sequence;
    for (std::size_t rail = 0; rail < rails; ++rail) {
      if (rail != survivor) {
        if (turn >= cut_at) pair.wires[rail].cut();
        if (turn >= left_knows_at) pair.lose(pair.left_vitals, 1, rail);
        if (turn >= right_knows_at) pair.lose(pair.right_vitals, 0, rail);
      }
      pair.wires[rail].carry(1 + random.below(100'000));
    }
    if (random.below(4) != 0) left.advance();
    if (random.below(2) != 0) right.advance();
  }
}

TEST(TcpChannel, LosesNothingWhenRailsAreCut) {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) exchange_with_cuts(seed, 2 + seed % 2);
}

TEST(TcpChannel, CarriesMessagesOverOneRail) {
  Pair pair(1, SIZE_MAX);
  std::uint32_t sequence = 0;
  for (const std::size_t size : {0, 1, 31, 4096, 131'039, 131'040, 131'041, 3'000'017}) {
    const auto sent = pattern(1, size);
    Taking taking;
    pair.left->send(header_of(++sequence, size), sent.data());
    taking.begin(*pair.right, header_of(sequence, size), size % 2 == 1);
    while (pair.left->sending() || pair.right->receiving()) {
      pair.wires[0].carry(60'000);
      pair.left->advance();
      pair.right->advance();
      taking.advance(*pair.right);
    }
    EXPECT_EQ(taking.got, sent) << size;
  }
}

TEST(TcpChannel, ASenderAloneIsFreedByAcknowledgements) {
  Pair pair(2, 64 << 10);
  // More than is kept, and only one way; the receiver's own small messages lie before its acknowledgements.
  pair.right->send(header_of(1, 5), pattern(9, 5).data());
  const auto sent = pattern(4, 40 << 20);
  Taking taking;
  pair.left->send(header_of(1, sent.size()), sent.data());
  taking.begin(*pair.right, header_of(1, sent.size()), true);
  for (int turn = 0; pair.left->sending() || pair.right->receiving(); ++turn) {
    ASSERT_LT(turn, 100'000);
    for (Wire& wire : pair.wires) wire.carry(200'000);
    pair.left->advance();
    pair.right->advance();
    taking.advance(*pair.right);
  }
  EXPECT_TRUE(taking.got == sent);
  Taking small;
  small.begin(*pair.left, header_of(1, 5), false);
  pair.left->advance();
  EXPECT_FALSE(pair.left->receiving());
  EXPECT_EQ(small.got, pattern(9, 5));
}

TEST(TcpChannel, AnotherOperationThanExpectedIsReported) {
  for (const std::size_t size : {100, 200'000}) {
    Pair pair(2, 64 << 10);
    const auto sent = pattern(1, size);
    MessageHeader header = header_of(7, size);
    header.kind = static_cast<std::uint8_t>(CollectiveKind::kAllGather);
    pair.left->send(header, sent.data());
    Taking taking;
    taking.begin(*pair.right, header_of(7, 64), true);
    try {
      for (int turn = 0; turn < 100; ++turn) {
        for (Wire& wire : pair.wires) wire.carry(200'000);
        pair.left->advance();
        pair.right->advance();
      }
      FAIL() << "nothing was told";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), fmt::format("rank 0 on left is at operation 7, all-gather of {} f32, where rank 1 on "
                                             "right is at operation 7, all-reduce of 64 f32 (sum)",
                                             size));
    }
  }
}

TEST(TcpChannel, GarbageBreaksOnlyItsRail) {
  Ends a = connected(), b = connected();
  Health health(two_nodes(2), 1);
  LinkTuning tuning;
  std::vector<Socket> sockets;
  sockets.push_back(std::move(a.right));
  sockets.push_back(std::move(b.right));
  TcpChannel channel(health, 0, std::move(sockets), tuning);
  std::array<std::byte, 16> destination;
  channel.receive(header_of(1, 16), destination.data());
  const std::string garbage(10'000, 'g');
  a.left.send_all(garbage, Deadline::after({1}));
  channel.advance();
  channel.advance();
  const std::vector<PathLoss> losses = health.take_reports();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].rail, 0);
  EXPECT_EQ(losses[0].why, "what came was no frame");
  EXPECT_TRUE(channel.receiving());
}

}  // namespace
}  // namespace yoke::comm::direct
