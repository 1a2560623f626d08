#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/base/hash.h"
#include "yoke/base/rng.h"
#include "yoke/sync/messages.h"
#include "yoke/sync/sync.h"

namespace yoke::sync {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

std::string random_bytes(std::size_t size, std::uint64_t seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; i += 16) {
    const PhiloxBlock block = philox(seed, i);
    std::memcpy(bytes.data() + i, block.data(), std::min<std::size_t>(16, size - i));
  }
  return bytes;
}

void write(const fs::path& file, std::string_view content) {
  make_folder(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

// Sends and receives between two folders of this machine over loopback.
class Copy : public testing::Test {
 protected:
  Copy() : scratch("yoke-sync"), source(scratch.path() / "source"), target(scratch.path() / "target") {}

  ReceiverPlan receiver_plan(const std::vector<FileToSend>& files, int rails) const {
    ReceiverPlan plan{.folder = target, .token = token, .rails = {}, .streams = 2, .files = {}};
    for (int i = 0; i < rails; ++i) plan.rails.push_back({"127.0.0.1", ""});
    for (const FileToSend& file : files) {
      plan.files.push_back({file.file, find_present(target, file.file), file.file.size});
    }
    return plan;
  }
  SenderPlan sender_plan(const std::vector<FileToSend>& files, const std::vector<int>& ports) const {
    SenderPlan plan{.folder = source, .token = token, .streams = 2, .rails = {}, .files = files};
    for (const int port : ports) plan.rails.push_back({{"127.0.0.1", ""}, {"127.0.0.1", port}});
    return plan;
  }
  std::vector<FileToSend> everything() const {
    std::vector<FileToSend> files;
    for (const FileSize& file : list_files(source)) {
      files.push_back({file, {{0, piece_count(file.size)}}});
    }
    return files;
  }

  ScratchDir scratch;
  fs::path source, target;
  std::string token = random_token_hex(16);
};

TEST_F(Copy, OfAllPiecesGivesTheSameFolder) {
  write(source / "config.json", "{}");
  write(source / "empty", "");
  write(source / "deep/weights", random_bytes(3 * kPieceSize + 5, 1));
  const auto files = everything();
  Receiver receiver(receiver_plan(files, 2));
  std::thread receiving([&] { receiver.receive(); });
  const Sent sent = send_pieces(sender_plan(files, receiver.ports()));
  receiving.join();
  EXPECT_FALSE(fs::exists(target)) << "nothing has its name before the end";
  receiver.finish();
  EXPECT_EQ(list_files(target), list_files(source));
  EXPECT_EQ(hash_files(target, list_files(source)), hash_files(source, list_files(source)));
  EXPECT_EQ(sent.rails[0].bytes + sent.rails[1].bytes, 3 * kPieceSize + 5 + 2);
  EXPECT_EQ(sent.damaged, 0U);
  EXPECT_FALSE(fs::exists(partial_of(target)));
}

TEST_F(Copy, OfOnePieceKeepsTheOthersOfAFileThatWasThere) {
  const std::string right = random_bytes(3 * kPieceSize, 2);
  std::string wrong = right;
  wrong[kPieceSize + 7] ^= 1;
  write(source / "weights", right);
  write(target / "weights", wrong);
  write(target / "notes", "of the owner");
  const std::vector<FileToSend> files = {{{"weights", right.size()}, {{1, 1}}}};
  Receiver receiver(receiver_plan(files, 1));
  std::thread receiving([&] { receiver.receive(); });
  const Sent sent = send_pieces(sender_plan(files, receiver.ports()));
  receiving.join();
  receiver.finish();
  EXPECT_EQ(sent.rails[0].bytes, kPieceSize);
  EXPECT_EQ(sha256_file_hex(target / "weights"), sha256_hex(right));
  EXPECT_TRUE(fs::exists(target / "notes"));
  EXPECT_FALSE(fs::exists(partial_of(target)));
}

TEST_F(Copy, GoesOverTheRailThatIsLeft) {
  write(source / "weights", random_bytes(4 * kPieceSize, 3));
  const auto files = everything();
  Receiver receiver(receiver_plan(files, 1));
  std::thread receiving([&] { receiver.receive(); });
  const int nobody = [] {
    Socket closed = listen_tcp({"127.0.0.1", 0});
    return closed.local().port;
  }();
  const Sent sent = send_pieces(sender_plan(files, {nobody, receiver.ports()[0]}));
  receiving.join();
  EXPECT_EQ(sent.rails[0].bytes, 0U);
  EXPECT_NE(sent.rails[0].problem, "");
  EXPECT_EQ(sent.rails[1].bytes, 4 * kPieceSize);
}

TEST_F(Copy, WithoutAnyRailFails) {
  write(source / "weights", "content");
  const int nobody = [] {
    Socket closed = listen_tcp({"127.0.0.1", 0});
    return closed.local().port;
  }();
  EXPECT_ERROR(send_pieces(sender_plan(everything(), {nobody})), ErrorCode::kUnavailable, "127.0.0.1");
}

// A receiver of this test's own that says of each piece what it is told to.
TEST_F(Copy, ThatIsDamagedIsSentAgainAndThenGivenUp) {
  write(source / "weights", "content");
  Socket listener = link::listen_on_rail({"127.0.0.1", ""});
  const int port = listener.local().port;
  const auto answer = [&](std::string words) {
    return std::thread([this, &listener, words = std::move(words)] {
      Socket socket = link::accept_on_rail(listener, token, Deadline::after(Seconds{10}));
      for (const char word : words) {
        std::string piece(kPieceHeaderSize + 7, '\0');
        socket.receive_exact(std::as_writable_bytes(std::span(piece)), Deadline::after(Seconds{10}));
        socket.send_all(std::string(1, word), Deadline::after(Seconds{10}));
      }
      char end = 0;  // until the sender leaves
      while (recv(socket.fd(), &end, 1, 0) != 0) std::this_thread::yield();
    });
  };
  SenderPlan plan = sender_plan(everything(), {port});
  plan.streams = 1;
  std::thread mends = answer("ddk");
  EXPECT_EQ(send_pieces(plan).damaged, 2U);
  mends.join();
  std::thread never = answer("dddd");
  EXPECT_ERROR(send_pieces(plan), ErrorCode::kInvalid, "arrives damaged again and again");
  never.join();
}

TEST_F(Copy, RefusesPathsThatLeaveTheFolder) {
  for (const char* path : {"../etc/passwd", "/etc/passwd", "a/../../b", "", ".", "a//../.."}) {
    EXPECT_ERROR(Receiver(receiver_plan({{{path, 1}, {{0, 1}}}}, 1)), ErrorCode::kInvalid, "no path inside a folder")
        << path;
  }
  EXPECT_FALSE(fs::exists(partial_of(target)));
}

TEST_F(Copy, ThatDoesNotFitIsRefusedBeforeAnythingIsMade) {
  const std::vector<FileToSend> files = {{{"weights", 1ULL << 60}, {}}};
  EXPECT_ERROR(Receiver(receiver_plan(files, 1)), ErrorCode::kExhausted, "are free there");
  EXPECT_FALSE(fs::exists(partial_of(target)));
}

TEST(Files, HiddenOnesAreLeftOutAndLinksAreFollowed) {
  const ScratchDir scratch("yoke-sync");
  write(scratch.path() / "blob/x", "content");
  write(scratch.path() / "model/.git/config", "");
  write(scratch.path() / "model/.hidden", "");
  fs::create_symlink(scratch.path() / "blob/x", scratch.path() / "model/weights");
  EXPECT_THAT(list_files(scratch.path() / "model"), ElementsAre(FileSize{"weights", 7}));
  EXPECT_ERROR(list_files(scratch.path() / "none"), ErrorCode::kNotFound, "cannot list the folder");
}

TEST(PieceHeader, IsReadAsWritten) {
  const PieceHeader header{
      .file = 7, .piece = 0x123456789AULL, .length = 8 << 20, .hash = "0123456789abcdef0123456789abcdef"};
  ASSERT_EQ(encode(header).size(), kPieceHeaderSize);
  EXPECT_EQ(decode(encode(header)), header);
}

spec::Cluster cluster_of(const std::vector<std::vector<const char*>>& rails) {
  spec::Cluster cluster{.name = "desk", .nodes = {}};
  for (std::size_t i = 0; i < rails.size(); ++i) {
    spec::ClusterNode node{.name = fmt::format("spark-{}", i + 1), .address = "10.0.0.1"};
    for (const char* address : rails[i]) node.rails.push_back({"eth", *parse_ipv4_prefix(address)});
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

TEST(Rounds, OfARingOfFourReachTheFarNodeThroughItsNeighbour) {
  const auto rounds = plan_rounds(cluster_of({{"192.168.1.1/24", "192.168.4.1/24"},
                                              {"192.168.1.2/24", "192.168.2.2/24"},
                                              {"192.168.2.3/24", "192.168.3.3/24"},
                                              {"192.168.3.4/24", "192.168.4.4/24"}}),
                                  0, std::nullopt);
  ASSERT_EQ(rounds.size(), 2U);
  ASSERT_EQ(rounds[0].size(), 2U);
  ASSERT_EQ(rounds[1].size(), 1U);
  EXPECT_EQ(rounds[1][0].to, 2);
  EXPECT_NE(rounds[1][0].from, 0);
  EXPECT_EQ(rounds[0][0].rails[0].a.address, "192.168.1.1") << "the sender's end comes first";
}

TEST(Rounds, OfASwitchAreOne) {
  const auto rounds = plan_rounds(
      cluster_of({{"192.168.1.1/24"}, {"192.168.1.2/24"}, {"192.168.1.3/24"}, {"192.168.1.4/24"}}), 2, std::nullopt);
  ASSERT_EQ(rounds.size(), 1U);
  EXPECT_EQ(rounds[0].size(), 3U);
}

TEST(Rounds, NameTheNodeThatNoRailReaches) {
  EXPECT_ERROR(plan_rounds(cluster_of({{"192.168.1.1/24"}, {"192.168.1.2/24"}, {"192.168.9.3/24"}}), 0, std::nullopt),
               ErrorCode::kInvalid, "spark-3");
}

TEST(Listed, FilesOfANodeStayInTheFolderAndCanBeCounted) {
  constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
  check_listed({{"a", 32 * kTiB}, {"deep/b", 32 * kTiB}, {"empty", 0}}, "spark-2");
  EXPECT_ERROR(check_listed({{"a", 1}, {"../b", 1}}, "spark-2"), ErrorCode::kInvalid, "no path inside a folder");
  EXPECT_ERROR(check_listed({{"a", 64 * kTiB}, {"b", 1}}, "spark-2"), ErrorCode::kInvalid, "spark-2 lists more than");
  EXPECT_ERROR(check_listed({{"a", 1}, {"b", ~std::uint64_t{0}}}, "spark-2"), ErrorCode::kInvalid, "64 TiB");
  EXPECT_ERROR(check_listed(std::vector<FileSize>(100'001, {"a", 1}), "spark-2"), ErrorCode::kInvalid, "100000 files");
}

}  // namespace
}  // namespace yoke::sync
