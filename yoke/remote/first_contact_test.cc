#include "yoke/remote/first_contact.h"

#include <gtest/gtest.h>

namespace yoke::remote {
namespace {

TEST(HostKeys, AreReadForTheHostThatWasAskedAndNothingElse) {
  const auto keys = parse_host_keys(
      "# 10.77.0.2:22 SSH-2.0-OpenSSH_9.2p1\n"
      "10.77.0.2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ\n"
      "evil.example,* ssh-rsa AAAAB3Nz\n"
      "10.77.0.2 ssh-dss AAAA\n"
      "10.77.0.2 ssh-rsa not*base64\n"
      "@cert-authority * ssh-rsa AAAA\n",
      {.name = "spark-2", .address = "10.77.0.2"});
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].line, "10.77.0.2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ");
  EXPECT_EQ(keys[1].line, "10.77.0.2 ssh-rsa AAAAB3Nz") << "the name is ours, not the scan's";
}

TEST(HostKeys, OfAnotherPortAreNamedWithIt) {
  const auto keys = parse_host_keys("[a]:2222 ssh-ed25519 AAAA\n", {.name = "a", .address = "a", .port = 2222});
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].line, "[a]:2222 ssh-ed25519 AAAA");
}

}  // namespace
}  // namespace yoke::remote
