#include "yoke/remote/program_hash.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"

namespace yoke::remote {
namespace {

namespace fs = std::filesystem;

struct ProgramHash : testing::Test {
  ScratchDir scratch{"yoke-program-hash"};
  fs::path memory = scratch.path() / "memory";
  const fs::path program = "/bin/sh";  // older than the moment of the test
};

TEST_F(ProgramHash, IsComputedOnceForTheSameFile) {
  const std::string hash = program_hash(program, memory);
  EXPECT_EQ(hash, sha256_file_hex(program));
  const std::string kept = read_file(memory);
  ASSERT_TRUE(kept.ends_with(hash));
  EXPECT_EQ(fs::status(memory).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // What is remembered is what counts: another hash comes back as it is.
  const std::string other(64, 'a');
  write_file_atomically(memory, kept.substr(0, kept.size() - 64) + other);
  EXPECT_EQ(program_hash(program, memory), other);
}

TEST_F(ProgramHash, OfAnotherOrAChangedFileIsComputedAgain) {
  program_hash(program, memory);
  const fs::path mine = scratch.path() / "program";
  write_file_atomically(mine, "one");
  EXPECT_EQ(program_hash(mine, memory), sha256_hex("one"));
  write_file_atomically(mine, "two");
  EXPECT_EQ(program_hash(mine, memory), sha256_hex("two")) << "of the same size, a moment later";
  EXPECT_EQ(program_hash(program, memory), sha256_file_hex(program));
}

TEST_F(ProgramHash, AMemoryThatMakesNoSenseOrCannotBeKeptIsNone) {
  for (const char* text : {"", "nonsense", "0:0 0 0.0 0.0 abc"}) {
    write_file_atomically(memory, text);
    EXPECT_EQ(program_hash(program, memory), sha256_file_hex(program)) << text;
  }
  EXPECT_EQ(program_hash(program, scratch.path() / "no/such/folder/memory"), sha256_file_hex(program));
  EXPECT_ERROR(program_hash(scratch.path() / "missing", memory), ErrorCode::kNotFound, "missing");
}

}  // namespace
}  // namespace yoke::remote
