#include "yoke/comm/nccl/session.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <thread>

#include "yoke/base/check.h"
#include "yoke/base/log.h"

namespace yoke::comm::nccl {
namespace {

// Aborting takes milliseconds. What is not done after this is stuck in the driver, and waiting on would only pass the
// hang to the caller.
constexpr std::chrono::seconds kEndPatience{10};

bool is_good(NcclResult result) { return result == NcclResult::kSuccess || result == NcclResult::kInProgress; }

}  // namespace

NcclSession::NcclSession(std::shared_ptr<const cuda::CudaDevice> device)
    : nccl_(NcclLibrary::get()), device_(std::move(device)), stream_(*device_), word_(*device_, sizeof(int)) {}

NcclResult NcclSession::start(int rank, int size, const std::string& id) {
  YOKE_CHECK_EQ(id.size(), kNcclIdSize);
  NcclUniqueId unique{};
  std::copy(id.begin(), id.end(), unique.bytes);
  NcclConfig config;
  const std::lock_guard lock(mutex_);
  YOKE_CHECK(comm_ == nullptr);
  const auto current = device_->current();
  return nccl_.call().init(&comm_, size, unique, rank, &config);
}

NcclResult NcclSession::call(const std::function<NcclResult(NcclComm)>& function) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return NcclResult::kInvalidUsage;
  const auto current = device_->current();
  return function(comm_);
}

NcclResult NcclSession::state() {
  NcclResult state = NcclResult::kSuccess;
  const NcclResult asked = call([&](NcclComm comm) { return nccl_.call().async_error(comm, &state); });
  return asked == NcclResult::kSuccess ? state : asked;
}

void NcclSession::abort() noexcept { end(nccl_.call().abort); }

void NcclSession::close(Deadline deadline) noexcept {
  try {
    NcclResult state = call(nccl_.call().finalize);
    cuda::PollPause between;
    while (is_good(state)) {
      state = this->state();
      if (state == NcclResult::kSuccess) return end(nccl_.call().destroy);
      if (deadline.expired()) break;
      between.pause();
    }
  } catch (const Error& error) {
    log(LogLevel::kDebug, "nccl: {}", error.message());
  }
  abort();
}

void NcclSession::end(End how) noexcept {
  NcclComm comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    comm = std::exchange(comm_, nullptr);
  }
  if (comm == nullptr) return;
  try {
    // In a thread of its own, so that it can be left behind; NCCL sets the device there itself.
    std::promise<void> promise;
    std::future<void> done = promise.get_future();
    std::thread thread([self = shared_from_this(), how, comm, promise = std::move(promise)]() mutable {
      how(comm);
      self.reset();  // Before the promise: the session should go with its owner, not here while the process ends.
      promise.set_value();
    });
    if (done.wait_for(kEndPatience) == std::future_status::ready) {
      thread.join();
    } else {
      log(LogLevel::kDebug, "nccl: a communicator did not end in {} s, and is left to itself", kEndPatience.count());
      thread.detach();
    }
  } catch (const std::system_error& error) {
    log(LogLevel::kDebug, "nccl: no thread to end a communicator in: {}", error.what());
    how(comm);
  }
}

}  // namespace yoke::comm::nccl
