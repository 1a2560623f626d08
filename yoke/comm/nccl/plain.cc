#include "yoke/comm/nccl/plain.h"

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/comm/nccl/operations.h"

namespace yoke::comm::nccl {

PlainNccl::PlainNccl(int device, int rank, int size, const std::string& id)
    : device_(device), stream_(device_), rank_(rank), size_(size) {
  YOKE_CHECK(id.size() == kNcclIdSize);
  NcclUniqueId bytes{};
  std::copy(id.begin(), id.end(), bytes.bytes);
  NcclConfig config{.blocking = 1};
  const cuda::CudaCurrent current = device_.current();
  const NcclLibrary& nccl = NcclLibrary::get();
  const NcclResult result = nccl.call().init(&comm_, size_, bytes, rank_, &config);
  if (result != NcclResult::kSuccess) throw nccl.error(result, "cannot make a plain communicator of NCCL");
}

PlainNccl::~PlainNccl() {
  const cuda::CudaCurrent current = device_.current();
  NcclLibrary::get().call().destroy(comm_);
}

void PlainNccl::all_reduce(const Collective& operation) {
  const cuda::CudaCurrent current = device_.current();
  const NcclLibrary& nccl = NcclLibrary::get();
  const NcclResult result = issue(
      {.nccl = nccl.call(), .device = device_, .comm = comm_, .rank = rank_, .size = size_, .stream = stream_.stream()},
      operation);
  if (result != NcclResult::kSuccess) throw nccl.error(result, "NCCL's all-reduce failed");
  stream_.wait(Deadline::after({60}));
}

std::string PlainNccl::version() const { return "NCCL " + NcclLibrary::get().version(); }

}  // namespace yoke::comm::nccl
