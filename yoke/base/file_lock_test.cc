#include "yoke/base/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;
using namespace literals;

// An flock belongs to the open file: a second opening conflicts with the first, also in one process.
TEST(FileLock, IsHadByOneAtATimeAndWaitedForWithALimit) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "lock";
  const Instant start = real_clock().now();
  {
    const FileLock first(file, {.busy = "unused"});
    const auto take = [&] { const FileLock second(file, {.wait = 100_ms, .busy = "somebody has it", .hint = "wait"}); };
    EXPECT_ERROR(take(), ErrorCode::kConflict, "somebody has it", "wait");
  }
  EXPECT_GE(to_seconds(real_clock().now() - start), 100_ms);
  const FileLock third(file, {.wait = 0_s, .busy = "it was not let go of"});
}

TEST(FileLock, OfAFileThatItsHolderRemovedIsTakenAnew) {
  const ScratchDir scratch;
  const fs::path folder = scratch.path() / "folder";
  for (const fs::path& locked : {folder / "lock", folder}) {
    const FileLockOptions options{.busy = "it was not taken", .prepare = [&] { make_folder(folder); }};
    std::optional<FileLock> first(std::in_place, locked, options);
    std::atomic<bool> taken = false;
    std::thread waiter([&] {
      const FileLock second(locked, options);
      taken = fs::exists(locked);
    });
    real_clock().sleep(50_ms);
    fs::remove_all(folder);
    first.reset();
    waiter.join();
    EXPECT_TRUE(taken) << locked;
  }
}

TEST(FileLock, ThatCannotBeHadIsNamed) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "missing/lock";
  const auto take = [&] { const FileLock lock(file, {.busy = "unused"}); };
  EXPECT_ERROR(take(), ErrorCode::kNotFound, file.native());
}

}  // namespace
}  // namespace yoke
