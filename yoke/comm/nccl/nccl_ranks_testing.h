// What the tests of NCCL share: whether they can run here, how their ranks meet, and numbers on the device. Only tests
// include this.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/comm/nccl/library.h"
#include "yoke/comm/nccl/nccl.h"
#include "yoke/comm/nccl/rank_processes_testing.h"
#include "yoke/cuda/driver.h"

namespace yoke::comm::nccl {

// Why there is nothing to test here, or nothing.
inline std::optional<std::string> nccl_missing() {
  if (const auto driver = cuda::CudaDriver::find(); !driver) return driver.error().message();
  if (const auto nccl = NcclLibrary::find(); !nccl) return nccl.error().message();
  if (cuda::CudaDriver::get().device_count() == 0) return "there is no GPU here";
  return std::nullopt;
}

inline spec::Membership membership_of(int size, int epoch) {
  spec::Membership membership{.epoch = epoch, .token = "00"};
  membership.members.resize(static_cast<std::size_t>(size));
  return membership;
}

// One id per epoch, through the folder.
inline std::function<std::string(const spec::Membership&)> exchange_of(const RankPart& part) {
  return [part](const spec::Membership& membership) {
    const std::string name = fmt::format("id-{}", membership.epoch);
    if (part.rank == 0) part.say(name, make_nccl_id());
    return part.hear(name, Deadline::after(Seconds{40}));
  };
}

inline std::unique_ptr<Communicator> join(const RankPart& part, Seconds operation_timeout = Seconds{20}) {
  const auto exchange = exchange_of(part);
  return make_nccl({.rank = part.rank,
                    .size = part.size,
                    .id = exchange(membership_of(part.size, part.epoch)),
                    .exchange_id = exchange,
                    .communicator = {.operation_timeout = operation_timeout}},
                   Deadline::after(Seconds{40}));
}

// Some numbers on the device; each rank has its own, so that a sum shows that all took part.
class Numbers {
 public:
  Numbers(std::size_t count, int rank) : values_(count), device_(0), stream_(device_), memory_(device_, bytes()) {
    for (std::size_t i = 0; i < count; ++i) values_[i] = static_cast<float>(rank + 1) + static_cast<float>(i);
    reset();
  }
  void reset() {
    stream_.copy(memory_.data(), values_.data(), bytes());
    stream_.wait(Deadline::after(Seconds{10}));
  }
  void* data() const { return memory_.data(); }
  std::size_t count() const { return values_.size(); }
  tensor::Stream stream() const { return stream_.stream(); }

  // After an all-reduce (sum) over ranks 0 to size-1.
  void expect_sum(int size) const {
    std::vector<float> found(values_.size());
    stream_.copy(found.data(), memory_.data(), bytes());
    stream_.wait(Deadline::after(Seconds{10}));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float expected =
          static_cast<float>(size * (size + 1)) / 2 + static_cast<float>(size) * static_cast<float>(i);
      ASSERT_EQ(found[i], expected) << "at " << i;
    }
  }

 private:
  std::size_t bytes() const { return values_.size() * sizeof(float); }
  std::vector<float> values_;
  cuda::CudaDevice device_;
  cuda::CudaStream stream_;
  cuda::CudaMemory memory_;
};

inline void all_reduce_rightly(Communicator& comm, Numbers& numbers) {
  numbers.reset();
  all_reduce(comm, numbers.data(), numbers.count(), tensor::DType::kF32, ReduceOp::kSum, numbers.stream());
  comm.wait(comm.record(numbers.stream()), Deadline::after(Seconds{20}));
  numbers.expect_sum(comm.size());
}

}  // namespace yoke::comm::nccl
