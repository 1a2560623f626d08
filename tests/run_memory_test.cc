// How much memory a rank takes, against what its part of the model is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/long_run.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke::tests {
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
  const Document reported = yoke_json({"run", model, "-p", "x", "-n", "1", "--ranks", "2", "--backend", "ref"});
  const auto weights = from_json<std::vector<std::int64_t>>(*reported.find("weights_bytes_each"));
  const auto cache = from_json<std::int64_t>(*reported.find("cache_bytes_each"));
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
    EXPECT_GT(static_cast<double>(peak.value), part) << "the cache is there before the first answer";
  }
}

// How much of a file is in the page cache.
double cached_part(const std::filesystem::path& file) {
  const auto size = std::filesystem::file_size(file);
  const UniqueFd fd = open_file(file, O_RDONLY);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) throw system_error(errno, "mmap");
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((size + page - 1) / page);
  const int failed = mincore(memory, size, pages.data());
  munmap(memory, size);
  if (failed != 0) throw system_error(errno, "mincore");
  const auto there = std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return (one & 1U) != 0; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

TEST_F(RunMemory, TheSecondStartNeedsNothingFromTheDisk) {
  const std::string model = scratch.path() / "made";
  ASSERT_EQ(yoke({"model", "make", model, "--shape", "nano", "--layers", "16", "--format", "f32"}).exit_status, 0);
  for (const char* const ranks : {"1", "2"}) {
    ASSERT_EQ(yoke({"run", model, "-p", "x", "-n", "1", "--ranks", ranks}).exit_status, 0);
    EXPECT_GT(cached_part(model + "/model.safetensors"), 0.95) << ranks;
  }
}

}  // namespace
}  // namespace yoke::tests
