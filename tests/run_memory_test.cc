// How much memory a rank takes, against what its part of the model is.
#include <gtest/gtest.h>

#include "tests/long_run.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

// The most that a process ever had in memory, pages of files included.
Bytes peak_of(pid_t pid) {
  for (const std::string& line : split(read_file(fmt::format("/proc/{}/status", pid)), '\n')) {
    if (line.starts_with("VmHWM:")) return Bytes{1024 * std::atoll(line.c_str() + 6)};
  }
  throw Error(ErrorCode::kNotFound, "the process tells no VmHWM");
}

struct RunMemory : EngineTest {};

TEST_F(RunMemory, OfARankIsItsPartOfTheModelAndLittleMore) {
  if (!build_info().sanitizers.empty()) GTEST_SKIP() << "a sanitizer's own memory is many times the program's";
  const std::string model = scratch.path() / "made";
  ASSERT_EQ(yoke({"model", "make", model, "--shape", "nano", "--layers", "64", "--format", "f32"}).exit_status, 0);
  const Document told = yoke_json({"run", model, "-p", "x", "-n", "1", "--ranks", "2"});
  const auto weights = from_document<std::vector<std::int64_t>>(*told.find("weights_bytes_each"));
  const auto cache = from_document<std::int64_t>(*told.find("cache_bytes_each"));
  ASSERT_GT(weights[0] + weights[1], 150'000'000);

  LongRun run(scratch.path(), {"--ranks", "2"}, model);
  ASSERT_NE(run.read_until(1), "");
  for (const int rank : {0, 1}) {
    const std::vector<pid_t> processes = run.ranks(rank);
    ASSERT_EQ(processes.size(), 1U);
    const double part = static_cast<double>(weights[static_cast<std::size_t>(rank)] + cache);
    const Bytes peak = peak_of(processes.front());
    // 30 MB of program, buffers and pages that were read past; a copy of a quarter of the weights would be seen.
    EXPECT_LT(static_cast<double>(peak.value), 1.05 * part + 40e6) << "rank " << rank << ": " << to_string(peak);
    EXPECT_GT(peak.value, weights[static_cast<std::size_t>(rank)]) << "or the wrong process was looked at";
  }
}

}  // namespace
}  // namespace yoke
