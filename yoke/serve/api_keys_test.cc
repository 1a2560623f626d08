#include "yoke/serve/api_keys.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"

namespace yoke::serve {
namespace {

TEST(ApiKeys, KnowTheOwnerOfAKeyByItsHash) {
  const ApiKeys keys =
      ApiKeys::parse("# made today\nalice " + sha256_hex("secret") + "\n\nbob\t" + sha256_hex("other"), "keys");
  EXPECT_TRUE(keys.are_needed());
  EXPECT_EQ(keys.owner("secret"), "alice");
  EXPECT_EQ(keys.owner("other"), "bob");
  EXPECT_FALSE(keys.owner("Secret"));
  EXPECT_FALSE(keys.owner(""));
  EXPECT_FALSE(keys.owner(sha256_hex("secret")));
  EXPECT_FALSE(ApiKeys().are_needed());
}

TEST(ApiKeys, RefuseAFileThatIsNotAsItMustBe) {
  EXPECT_ERROR(ApiKeys::parse("alice secret\n", "keys"), ErrorCode::kInvalid, "keys:1: this is no 'NAME SHA256'");
  EXPECT_ERROR(ApiKeys::parse("# none\n", "keys"), ErrorCode::kInvalid, "keys has no keys");
  const ScratchDir scratch;
  const auto file = scratch.path() / "keys";
  write_file_atomically(file, "a " + sha256_hex("x"), {.mode = 0666});
  EXPECT_ERROR(ApiKeys::load(file), ErrorCode::kPermission, "others can write");
}

}  // namespace
}  // namespace yoke::serve
