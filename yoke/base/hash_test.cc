#include "yoke/base/hash.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

// FIPS 180-2, appendix B.
constexpr std::string_view kOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kOfMillionA = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, GivesThePublishedAnswers) {
  EXPECT_EQ(sha256_hex("abc"), kOfAbc);
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')), kOfMillionA);
}

TEST(Sha256, OfAFileIsThatOfItsContent) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "a", std::string(1000000, 'a'));
  EXPECT_EQ(sha256_file_hex(scratch.path() / "a"), kOfMillionA);
  EXPECT_ERROR(sha256_file_hex(scratch.path() / "missing"), ErrorCode::kNotFound, "missing: No such file");
}

TEST(RandomToken, HasTheLengthAskedForAndDiffersEachTime) {
  EXPECT_EQ(random_token_hex(16).size(), 32U);
  EXPECT_NE(random_token_hex(16), random_token_hex(16));
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "ab"));
}

// RFC 4231, test case 2.
TEST(HmacSha256, IsThatOfTheStandard) {
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_NE(hmac_sha256_hex("", "text"), hmac_sha256_hex("key", "text"));
}

TEST(SecretHash, DependsOnTheTextAndOnTheProcess) {
  EXPECT_EQ(SecretHash{}("a"), SecretHash{}(std::string("a")));
  EXPECT_NE(SecretHash{}("a"), SecretHash{}("b"));
  EXPECT_NE(SecretHash{}("a"), std::hash<std::string_view>{}("a"));
  EXPECT_EQ(secret_number(), secret_number());
}

}  // namespace
}  // namespace yoke
