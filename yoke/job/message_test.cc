#include "yoke/job/message.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/rng_testing.h"
#include "yoke/job/job_messages.h"

namespace yoke::job {
namespace {

TEST(Message, ComesBackWhateverThePiecesItComesIn) {
  const std::vector<Message> sent = {{MessageType::kHeartbeat},
                                     {MessageType::kAbort, "x"},
                                     output_message(3, 2, std::string("\0\xff\n", 3)),
                                     {MessageType::kMembership, std::string(70'001, 'm')}};
  std::string stream;
  for (const Message& message : sent) stream += encode(message);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, stream.size()}) {
    MessageReader reader;
    std::vector<Message> received;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      while (auto message = reader.next()) received.push_back(*std::move(message));
    }
    EXPECT_EQ(received, sent) << "pieces of " << piece;
  }
}

TEST(Message, OfAnImpossibleSizeOrTypeIsRefusedBeforeItsPayloadComes) {
  MessageReader large;
  large.feed(std::string("YKJ\x01\xff\xff\xff\xff\x02", 9));
  EXPECT_ERROR(large.next(), ErrorCode::kInvalid, "a message of 4294967295 bytes");
  MessageReader unknown;
  unknown.feed(std::string("YKJ\x01\0\0\0\0\x63", 9));
  EXPECT_ERROR(unknown.next(), ErrorCode::kInvalid, "unknown type 99");
  EXPECT_ERROR(unknown.next(), ErrorCode::kInvalid, "unknown type 99")
      << "a stream that lost its step does not find it back";
}

TEST(Message, RandomBytesAreRefused) {
  Random random(4);
  for (int round = 0; round < 20; ++round) {
    MessageReader reader;
    std::string bytes;
    for (int i = 0; i < 10'000; ++i) bytes += static_cast<char>(random.below(256));
    bytes[0] = 'X';
    reader.feed(bytes);
    try {
      reader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    }
  }
}

TEST(Message, PayloadsReadBackTheSame) {
  const StartRanks start{.node = "spark-2",
                         .argv = {"sh", "-c", "echo \"$RANK\""},
                         .folder = "/tmp",
                         .grace = {0.25},
                         .ranks = {{.rank = 1, .environment = {{"RANK", "1"}, {"EMPTY", ""}}}}};
  EXPECT_EQ(read_payload<StartRanks>(to_message(MessageType::kStart, start)), start);
  const RankEnded ended{.rank = 2, .exit_status = 137, .signal = 9, .out_of_memory = true};
  EXPECT_EQ(read_payload<RankEnded>(to_message(MessageType::kEnded, ended)), ended);
  const Join join{.rank = 1, .endpoints = {{"A", "192.168.100.1", 4000}}, .why = "rank 0 was lost"};
  EXPECT_EQ(read_payload<Join>(to_message(MessageType::kJoin, join)), join);
  const PathReport report{.rank = 1, .epoch = 3, .peer = 0, .rail = "B", .state = PathState::kBack, .why = ""};
  EXPECT_EQ(read_payload<PathReport>(to_message(MessageType::kPath, report)), report);
  const NodeState state{.time = 12.345678901,
                        .memory_bytes = std::int64_t{1} << 37,
                        .interfaces = {{.name = "e0", .is_up = true, .sent_bytes = 0, .received_bytes = 7}, {"e1"}}};
  EXPECT_EQ(read_payload<NodeState>(to_message(MessageType::kNodeState, state)), state);
}

TEST(Message, AnErrorKeepsItsCodeAndHint) {
  const Error sent(ErrorCode::kExhausted, "rank 1 on spark-2 was killed: out of memory", "less");
  const Error received = read_error(error_message(MessageType::kAbort, sent));
  EXPECT_EQ(received.code(), sent.code());
  EXPECT_EQ(received.message(), sent.message());
  EXPECT_EQ(received.hint(), sent.hint());
}

TEST(Message, PayloadsThatAreNoneAreRefused) {
  EXPECT_ERROR(read_payload<Join>({MessageType::kJoin, "{}"}), ErrorCode::kInvalid, "the key 'rank' is missing");
  EXPECT_ERROR(read_payload<Hello>({MessageType::kHello, "hello"}), ErrorCode::kInvalid, "message is not JSON");
  EXPECT_ERROR(read_output({MessageType::kOutput, "abc"}), ErrorCode::kInvalid, "output of no rank");
  EXPECT_ERROR(read_output(output_message(0, 3, "x")), ErrorCode::kInvalid, "output of rank 0, stream 3");
  EXPECT_ERROR(read_membership({MessageType::kMembership, R"({"epoch": 0, "token": "", "members": []})"}),
               ErrorCode::kInvalid, "epoch 0 is below 1");
}

}  // namespace
}  // namespace yoke::job
