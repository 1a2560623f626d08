#include "yoke/rank/world.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "yoke/base/error.h"
#include "yoke/base/ip.h"
#include "yoke/comm/mpi/mpi.h"
#include "yoke/job/rank_channel.h"
#include "yoke/rank/group.h"
#include "yoke/rank/rendezvous.h"

namespace yoke {
namespace {

// All members were there when the list was made, so connecting is quick, or somebody has gone since.
constexpr Seconds kAttempt{5};

std::vector<Ipv4> own_addresses() {
  std::vector<Ipv4> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof address);
    addresses.push_back(Ipv4{ntohl(address.sin_addr.s_addr)});
  }
  return addresses;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Where to listen in a group whose launcher does not say: on the halves that the cluster file gives this node, else on
// the first address that other machines may reach.
DirectListener::Halves halves_here(const WorldOptions& options) {
  DirectListener::Halves halves;
  if (const ClusterNode* node = options.cluster ? find_own_node(*options.cluster) : nullptr) {
    for (std::size_t i = 0; i < node->halves.size(); ++i) {
      halves.emplace_back(std::string(1, static_cast<char>('A' + i)), to_string(node->halves[i].address.address));
    }
  }
  if (!halves.empty()) return halves;
  for (const Ipv4 address : own_addresses()) {
    if (!to_string(address).starts_with("127.")) return {{"network", to_string(address)}};
  }
  return {};
}

// A rank that the job's supervisor started.
class JobWorld final : public World {
 public:
  JobWorld(const RankPlace& place, WorldOptions options)
      : World(place), options_(std::move(options)), channel_(RankChannel::from_environment()) {
    if (!channel_) throw Error(ErrorCode::kInvalid, "this rank has no line to its supervisor (YOKE_JOB_FD)");
    const auto told = options_.communicator.on_path;
    options_.communicator.on_path = [this, told](const PathEvent& event) {
      report(event);
      if (told) told(event);
    };
    // An abort ends what the communicator does; one that comes while there is none yet must be asked for.
    options_.communicator.while_making = [this] { channel_->throw_if_aborted(); };
    group_ = std::make_unique<Group>(DirectListener::open(halves()), place_, options_);
    channel_->on_abort([this](const Error& why) {
      const std::lock_guard lock(leaving_mutex_);
      if (!leaving_) group_->abort(why);
    });
    const Deadline deadline = Deadline::after(options_.join_limit);
    connect(channel_->join(group_->endpoints(), deadline), deadline);
  }
  // The group goes first: its thread reports to the channel. The channel's thread may come to the group until then.
  ~JobWorld() override {
    const std::lock_guard lock(leaving_mutex_);
    leaving_ = true;
  }

  Communicator& comm() override { return group_->comm(); }
  Communicator& control() override { return group_->control(); }
  std::vector<HalfEndpoint> endpoints() const override { return group_->endpoints(); }

  void recover(const Error& failure) override {
    const Deadline deadline = Deadline::after(options_.join_limit);
    connect(channel_->rejoin(group_->endpoints(), failure.what(), deadline), deadline);
  }

 private:
  // Whoever dies while the group is being made makes a later epoch necessary; the job decides whether there is one.
  void connect(Membership membership, Deadline deadline) {
    while (true) {
      try {
        group_->connect(membership, Deadline::after(std::min(kAttempt, deadline.remaining())));
        channel_->report_ready();
        return;
      } catch (const Error& error) {
        membership = channel_->rejoin(group_->endpoints(), error.what(), deadline);
      }
    }
  }

  DirectListener::Halves halves() const {
    DirectListener::Halves halves;
    for (const HalfAddress& half : channel_->halves()) halves.emplace_back(half.half, half.address);
    const bool has_other_nodes = place_.size > place_.local_size;
    if (halves.empty() && has_other_nodes) halves.emplace_back("management", channel_->address());
    return halves;
  }

  void report(const PathEvent& event) {
    const bool is_back = event.kind == PathEvent::Kind::kHalfBack;
    channel_->report_path(event.peer, event.half, is_back ? PathState::kBack : PathState::kLost, event.why);
  }

  WorldOptions options_;
  std::mutex leaving_mutex_;
  bool leaving_ = false;
  std::unique_ptr<RankChannel> channel_;
  std::unique_ptr<Group> group_;
};

// A rank whose launcher ends the whole group with the first death.
class LaunchedWorld final : public World {
 public:
  LaunchedWorld(const RankPlace& place, const WorldOptions& options) : World(place) {
    const bool by_mpi = place.origin == RankOrigin::kOpenMpi || place.origin == RankOrigin::kMpich ||
                        place.origin == RankOrigin::kSlurm;
    if (by_mpi) mpi_ = MpiSession::start();
    if (options.carrier == Carrier::kMpi || (by_mpi && options.carrier == Carrier::kAuto)) {
      if (!by_mpi) {
        throw Error(ErrorCode::kUsage, fmt::format("mpi needs ranks that MPI started, not {}", to_string(place.origin)),
                    "run it under mpirun, or choose direct");
      }
      comm_ = make_mpi(mpi_, options.communicator);
      return;
    }
    const Deadline deadline = Deadline::after(options.join_limit);
    group_ = std::make_unique<Group>(DirectListener::open(halves_here(options)), place_, options);
    const std::string mine = member_text(place_.node.empty() ? host_name() : place_.node, group_->endpoints());
    group_->connect(membership_from_texts(mpi_ ? mpi_->exchange(mine, deadline) : meet(rendezvous(), mine, deadline)),
                    deadline);
  }

  Communicator& comm() override { return comm_ ? *comm_ : group_->comm(); }
  Communicator& control() override { return comm_ ? *comm_ : group_->control(); }
  std::vector<HalfEndpoint> endpoints() const override {
    return group_ ? group_->endpoints() : std::vector<HalfEndpoint>{};
  }
  std::shared_ptr<MpiSession> mpi() const override { return mpi_; }
  void recover(const Error& failure) override { throw failure; }

 private:
  // The launcher's own port is taken by the launcher; the next one is ours.
  Rendezvous rendezvous() const {
    const Environment environment = environment_now();
    const bool in_set = place_.origin == RankOrigin::kLeaderWorkerSet;
    const auto address = environment.find(in_set ? "LWS_LEADER_ADDRESS" : "MASTER_ADDR");
    if (address == environment.end()) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} did not say where rank 0 is", to_string(place_.origin)),
                  "MASTER_ADDR or LWS_LEADER_ADDRESS must be set");
    }
    const auto port = environment.find("MASTER_PORT");
    const int number = port == environment.end() ? 29500 : std::atoi(port->second.c_str());
    return {.rank = place_.rank, .size = place_.size, .at = {resolve_address(address->second), number + 1}};
  }

  std::shared_ptr<MpiSession> mpi_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Group> group_;
};

}  // namespace

int World::device() const { return device_of(place_); }

const ClusterNode* find_own_node(const Cluster& cluster) {
  const std::vector<Ipv4> own = own_addresses();
  for (const ClusterNode& node : cluster.nodes) {
    for (const Ipv4& address : own) {
      if (node.address == to_string(address)) return &node;
      for (const Half& half : node.halves) {
        if (half.address.address == address) return &node;
      }
    }
  }
  return nullptr;
}

std::unique_ptr<World> join_world(const RankPlace& place, WorldOptions options) {
  if (place.origin == RankOrigin::kYoke) {
    if (options.carrier == Carrier::kMpi) {
      throw Error(ErrorCode::kUsage, "mpi needs ranks that MPI started", "run it under mpirun, or choose direct");
    }
    return std::make_unique<JobWorld>(place, std::move(options));
  }
  return std::make_unique<LaunchedWorld>(place, options);
}

}  // namespace yoke
