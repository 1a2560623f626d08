#include "yoke/comm/direct/wire.h"

#include <gtest/gtest.h>

namespace yoke::comm::direct {
namespace {

TEST(Wire, WhatIsEncodedIsDecoded) {
  Hello hello = make_hello();
  hello.epoch = 7;
  hello.from = 3;
  const std::optional<Hello> again = decode_hello(bytes_of(hello));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->from, 3U);
  EXPECT_EQ(again->nonce, hello.nonce);
  EXPECT_TRUE(decode_challenge(bytes_of(make_challenge())));
  EXPECT_EQ(decode_answer(bytes_of(make_answer(HandshakeReply::kStale, 9)))->epoch, 9U);
}

TEST(Wire, AnotherVersionEpochOrLengthIsRefused) {
  Hello hello = make_hello();
  hello.version = kWireVersion + 1;
  EXPECT_FALSE(decode_hello(bytes_of(hello)));
  FrameHeader frame = make_frame(5);
  EXPECT_TRUE(decode_frame(bytes_of(frame), 5));
  EXPECT_FALSE(decode_frame(bytes_of(frame), 6));
  frame.length = kMaxFrameBytes + 1;
  EXPECT_FALSE(decode_frame(bytes_of(frame), 5));
  frame.length = 10;
  frame.offset = UINT64_MAX - 5;
  EXPECT_FALSE(decode_frame(bytes_of(frame), 5));
}

TEST(Wire, ProofsDependOnTokenSideAndEveryField) {
  const Hello hello = make_hello();
  const std::array<char, 32> nonce = fresh_nonce();
  const auto proof = prove(Prover::kClient, "token", hello, nonce);
  EXPECT_EQ(proof, prove(Prover::kClient, "token", hello, nonce));
  EXPECT_NE(proof, prove(Prover::kServer, "token", hello, nonce));
  EXPECT_NE(proof, prove(Prover::kClient, "tokem", hello, nonce));
  EXPECT_NE(proof, prove(Prover::kClient, "token", hello, fresh_nonce()));
  Hello other = hello;
  other.epoch = 2;
  EXPECT_NE(proof, prove(Prover::kClient, "token", other, nonce));
}

TEST(Wire, AFailureTravelsWithCodeMessageAndHint) {
  const Error failure(ErrorCode::kUnavailable, "rank 1 is gone", "start it");
  const std::string beat = encode_heartbeat(HeartbeatKind::kFailed, 1, 42, 41, &failure);
  const auto bytes = std::as_bytes(std::span(beat));
  EXPECT_EQ(heartbeat_size(bytes), beat.size());
  EXPECT_EQ(heartbeat_size(bytes.first(40)), 0U) << "some is still to come";
  const HeartbeatFrame read = decode_heartbeat(bytes);
  EXPECT_EQ(read.header.begun, 42U);
  const Error again = failure_of(read);
  EXPECT_EQ(again.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(again.message(), "rank 1 is gone");
  EXPECT_EQ(again.hint(), "start it");
  const Error endless(ErrorCode::kInternal, std::string(100'000, 'x'), std::string(100'000, 'y'));
  EXPECT_LE(encode_heartbeat(HeartbeatKind::kFailed, 1, 0, 0, &endless).size(),
            sizeof(HeartbeatHeader) + kMaxHeartbeatText);
}

}  // namespace
}  // namespace yoke::comm::direct
