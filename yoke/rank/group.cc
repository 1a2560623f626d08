#include "yoke/rank/group.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/comm/nccl/nccl.h"
#include "yoke/cuda/driver.h"

namespace yoke::rank {
namespace {

// Contexts on eight GPUs and NCCL's rings take tens of seconds on a cold host. Nobody waits so long for the dead: the
// direct communicator knows of them meanwhile.
constexpr Seconds kNcclTime{60};

}  // namespace

Group::Group(std::shared_ptr<comm::DirectListener> listener, const job::RankPlace& place, const WorldOptions& options)
    : listener_(std::move(listener)), place_(place), options_(options) {}

void Group::connect(const spec::Membership& membership, Deadline deadline) {
  if (direct_) {
    direct_->rebuild(membership, deadline);
  } else {
    auto made = comm::make_direct(listener_, membership, place_.rank, options_.communicator, deadline);
    {
      const std::lock_guard lock(mutex_);
      direct_ = std::move(made);
    }
    // Once more, now that abort() reaches it: none may come in between unheard.
    if (options_.communicator.while_making) options_.communicator.while_making();
  }
  if (options_.transport == Transport::kNccl) connect_nccl(membership);
}

void Group::connect_nccl(const spec::Membership& membership) {
  if (nccl_) return nccl_->rebuild(membership, Deadline::after(kNcclTime));
  if (place_.local_size > cuda::CudaDriver::get().device_count()) {
    // NCCL refuses two ranks of one host on one GPU; as ranks of different hosts it takes them.
    setenv("NCCL_HOSTID", fmt::format("{}-{}", place_.node, place_.rank).c_str(), 0);
  }
  auto made = comm::nccl::make_nccl({.rank = place_.rank,
                                     .size = place_.size,
                                     .id = exchange_nccl_id(),
                                     .device = device_of(place_),
                                     .exchange_id = [this](const spec::Membership&) { return exchange_nccl_id(); },
                                     .watch = [this] { direct_->wait({}, Deadline::never()); },
                                     .communicator = options_.communicator},
                                    Deadline::after(kNcclTime));
  const std::lock_guard lock(mutex_);
  nccl_ = std::move(made);
}

std::string Group::exchange_nccl_id() {
  std::string id = place_.rank == 0 ? comm::nccl::make_nccl_id() : std::string(128, '\0');
  comm::broadcast(*direct_, id.data(), id.size(), tensor::DType::kI8, 0);
  return id;
}

void Group::abort(const Error& reason) {
  const std::lock_guard lock(mutex_);
  if (direct_) direct_->abort(reason);
  if (nccl_) nccl_->abort(reason);
}

int device_of(const job::RankPlace& place) { return place.local_rank % cuda::CudaDriver::get().device_count(); }

std::string member_text(const std::string& node, const std::vector<spec::RailEndpoint>& endpoints) {
  const spec::Membership alone{.token = random_token_hex(32), .members = {{.node = node, .endpoints = endpoints}}};
  return print_json(spec::to_json(alone));
}

spec::Membership membership_from_texts(const std::vector<std::string>& texts) {
  spec::Membership all;
  for (const std::string& text : texts) {
    spec::Membership one = from_json<spec::Membership>(parse_json(text, "a rank's address"));
    if (all.members.empty()) all.token = one.token;
    all.members.push_back(one.members.front());
  }
  return from_json<spec::Membership>(spec::to_json(all));  // validates the whole
}

}  // namespace yoke::rank
