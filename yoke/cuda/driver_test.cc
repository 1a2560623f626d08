#include "yoke/cuda/driver.h"

#include <gtest/gtest.h>

#include <numeric>
#include <regex>
#include <thread>
#include <vector>

#include "tests/emulation.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process.h"

namespace yoke::cuda {
namespace {

using namespace literals;

// Each of these needs a GPU, and says so where there is none.
class CudaDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto driver = CudaDriver::find(); !driver) GTEST_SKIP() << driver.error().message();
  }
};

std::vector<int> counting(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

// To the device, from one place there to another, and back.
std::vector<int> round_trip(const CudaDevice& device, const std::vector<int>& values) {
  const std::size_t size = values.size() * sizeof(int);
  const CudaStream stream(device);
  const CudaMemory first(device, size), second(device, size);
  std::vector<int> back(values.size());
  stream.copy(first.data(), values.data(), size);
  stream.copy(second.data(), first.data(), size);
  stream.copy(back.data(), second.data(), size);
  stream.wait(Deadline::after(10_s));
  return back;
}

TEST(CudaDriver, ReportsWhyItIsNotThere) {
  if (std::getenv("YOKE_CUDA") == nullptr) {  // in a process of its own, which looks for a library that is nowhere
    std::vector<std::string> argv = tests::this_test_program();
    argv.emplace_back("--gtest_filter=CudaDriver.ReportsWhyItIsNotThere");
    const Outcome outcome =
        run({.argv = std::move(argv), .environment = {{"YOKE_CUDA", "/no/such/libcuda.so"}}, .timeout = 60_s});
    EXPECT_TRUE(outcome.ok()) << outcome.out;
    return;
  }
  const auto driver = CudaDriver::find();
  ASSERT_FALSE(driver);
  EXPECT_TRUE(is_error(driver.error(), ErrorCode::kUnsupported, "the CUDA driver cannot be loaded: /no/such/libcuda.so",
                       "install the NVIDIA driver"));
  EXPECT_ERROR(CudaDevice(0), ErrorCode::kUnsupported, "the CUDA driver cannot be loaded");
}

TEST_F(CudaDriverTest, NamesItsDevices) {
  const CudaDriver& driver = CudaDriver::get();
  EXPECT_GE(driver.version(), 12000);
  ASSERT_GE(driver.device_count(), 1);
  EXPECT_NE(driver.device_name(0).find("NVIDIA"), std::string::npos) << driver.device_name(0);
  EXPECT_EQ(CudaDevice(0).name(), driver.device_name(0));
}

TEST_F(CudaDriverTest, ADeviceThatIsNotThereIsAnError) {
  for (const int index : {-1, 1000}) {
    try {
      const CudaDevice device(index);
      FAIL() << "GPU " << index << " was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.message();
    }
  }
}

TEST_F(CudaDriverTest, CopiesThereAndBack) {
  const CudaDevice device(0);
  for (const std::size_t count : {0, 1, 7, 1021, 1 << 20}) {
    const std::vector<int> values = counting(count);
    EXPECT_EQ(round_trip(device, values), values) << count;
  }
}

TEST_F(CudaDriverTest, WorksInEachThread) {
  const CudaDevice device(0);
  std::vector<int> back;
  std::thread([&] { back = round_trip(device, counting(1021)); }).join();
  EXPECT_EQ(back, counting(1021));
  EXPECT_EQ(round_trip(device, counting(13)), counting(13));
}

TEST_F(CudaDriverTest, TooMuchMemoryIsExhausted) {
  const CudaDevice device(0);
  try {
    const CudaMemory memory(device, std::size_t{1} << 50);
    FAIL() << "a pebibyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted) << error.message();
    EXPECT_NE(error.message().find("allocate"), std::string::npos) << error.message();
  }
}

TEST_F(CudaDriverTest, AnEventPassesAfterTheWorkBeforeIt) {
  const CudaDevice device(0);
  const CudaStream stream(device);
  const CudaEvent event(device);
  const std::vector<int> values = counting(1 << 22);
  const CudaMemory memory(device, values.size() * sizeof(int));
  stream.copy(memory.data(), values.data(), memory.size());
  event.record(stream.stream());
  stream.wait(Deadline::after(10_s));
  EXPECT_TRUE(event.passed());
  EXPECT_TRUE(has_passed(device, event.event()));
  EXPECT_TRUE(has_passed(device, tensor::Event{}));
}

TEST_F(CudaDriverTest, ReportsBusAndMemory) {
  const CudaDevice device(0);
  EXPECT_TRUE(std::regex_match(device.bus(), std::regex("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}"))) << device.bus();
  const std::size_t before = device.memory_available();
  EXPECT_GT(before, std::size_t{64} << 20);
  if (device.has_unified_memory()) return;  // where everybody else takes and gives
  const CudaMemory memory(device, std::size_t{64} << 20);
  EXPECT_LT(device.memory_available(), before);
}

TEST_F(CudaDriverTest, TwoEventsGiveTheTimeBetweenThem) {
  const CudaDevice device(0);
  const CudaStream stream(device);
  const CudaMemory memory(device, std::size_t{64} << 20), other(device, memory.size());
  const CudaEvent begin(device, CudaEventUse::kTime), end(device, CudaEventUse::kTime);
  const Instant start = real_clock().now();
  begin.record(stream.stream());
  for (int i = 0; i < 100; ++i) stream.copy(other.data(), memory.data(), memory.size());
  end.record(stream.stream());
  stream.wait(Deadline::after(10_s));
  const double outside = to_seconds(real_clock().now() - start).value;
  EXPECT_GT(seconds_between(begin, end), 0);
  EXPECT_LE(seconds_between(begin, end), outside + 1e-3);
}

TEST_F(CudaDriverTest, CopiesOnAStreamKnownByItsHandle) {
  const CudaDevice device(0);
  const CudaStream stream(device);
  const std::vector<int> values = counting(31);
  std::vector<int> back(values.size());
  const CudaMemory memory(device, values.size() * sizeof(int));
  cuda_copy(device, stream.stream(), memory.data(), values.data(), memory.size());
  cuda_copy(device, stream.stream(), back.data(), memory.data(), memory.size());
  stream.wait(Deadline::after(10_s));
  EXPECT_EQ(back, values);
}

}  // namespace
}  // namespace yoke::cuda
