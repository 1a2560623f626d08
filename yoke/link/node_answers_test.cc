#include "yoke/link/node_answers.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"

namespace yoke::link {
namespace {

// A key that ssh-keygen made.
constexpr const char* kKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP7jBa8Wd4Z0cZnfPyk07iELLUMy5TWjyaFVMyP0MyHy";

TEST(NodeAnswers, AKeyIsTakenWithoutItsComment) {
  EXPECT_EQ(checked_key(std::string(kKey) + " me@desk", "public key", "spark-2"), kKey);
  EXPECT_EQ(checked_key(kKey, "host key", "spark-2"), kKey);
}

TEST(NodeAnswers, WhatIsNotExactlyOneKeyIsRefusedWithTheNodesName) {
  const std::string key = kKey;
  for (const std::string& line :
       {key + " a\n* " + key, "command=\"id\" " + key, "* " + key, std::string("ssh-ed25519 AAAAevil"),
        "ssh-rsa " + key.substr(12), std::string("ssh-ed25519"), std::string(), key + " a\x1b[31m",
        std::string("ssh-dss AAAAB3NzaC1kc3MAAAA="), "ssh-ed25519 " + std::string(100'000, 'A')}) {
    EXPECT_ERROR(checked_key(line, "public key", "spark-2"), ErrorCode::kInvalid,
                 "spark-2 gives a public key that is none")
        << line.substr(0, 80);
  }
}

TEST(NodeAnswers, TheUsersKeyGetsOurCommentAndHostKeysNone) {
  const SetupFacts facts = checked_facts(
      {.public_key = std::string(kKey) + " from=\"*\"", .host_keys = {kKey}, .rdma_devices = {"rocep1s0f0", ""}},
      "spark-2");
  EXPECT_EQ(facts.public_key, std::string(kKey) + " yoke@spark-2");
  EXPECT_EQ(facts.host_keys, std::vector<std::string>{kKey});
}

TEST(NodeAnswers, NamesThatAShellWouldReadAreRefused) {
  EXPECT_ERROR(checked_facts({.management_interface = "$(id>&2)"}, "spark-2"), ErrorCode::kInvalid,
               "spark-2 has a device named '$(id>&2)'");
  EXPECT_ERROR(checked_facts({.rdma_devices = {"a;b"}}, "spark-2"), ErrorCode::kInvalid, "spark-2 has a device named");
}

}  // namespace
}  // namespace yoke::link
