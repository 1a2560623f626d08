#include "yoke/rank/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/ip.h"
#include "yoke/base/text.h"
#include "yoke/comm/mpi/mpi.h"
#include "yoke/cuda/driver.h"
#include "yoke/job/job.h"
#include "yoke/job/rank_channel.h"
#include "yoke/rank/group.h"
#include "yoke/rank/own_address.h"
#include "yoke/rank/rendezvous.h"

namespace yoke::rank {
namespace {

// All members were there when the list was made, so connecting is quick, or somebody has gone since.
constexpr Seconds kAttempt{5};

// A process that MPI does not know is a world of its own to it, and would measure or compute alone, to no error.
void check_same_place(const job::RankPlace& place, const comm::mpi::MpiSession& mpi) {
  if (mpi.rank() == place.rank && mpi.size() == place.size) return;
  const std::string_view launcher = job::to_string(place.origin);
  throw Error(ErrorCode::kConflict,
              fmt::format("by {} this is rank {} of {}, but by MPI ({}) rank {} of {}", launcher, place.rank,
                          place.size, mpi.version(), mpi.rank(), mpi.size()),
              place.origin == job::RankOrigin::kSlurm
                  ? "srun --mpi=pmix lets ranks find each other ('srun --mpi=list' shows what this Slurm has)"
                  : fmt::format("start it by the {} of that MPI, or unset the variables of another", launcher));
}

constexpr Seconds kResolveTime{30};
constexpr std::size_t kMinSecret = 16;
constexpr int kTorchPort = 29500;  // torchrun's own where none is said

int port_of_launcher(const job::Environment& environment) {
  const auto found = environment.find("MASTER_PORT");
  if (found == environment.end()) return kTorchPort;
  const std::string& text = found->second;
  int port = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failure != std::errc() || rest != text.data() + text.size() || port < 1 || port > 65534) {
    throw Error(ErrorCode::kInvalid, fmt::format("MASTER_PORT is '{}', which is no port", printable(text, 40)),
                "set it to a number from 1 to 65534, the same on all ranks: the one above it is used");
  }
  return port;
}

// Who else may come to where the ranks meet. The launchers that leave this to us have no secret of their own.
void set_secret(Rendezvous& meeting, bool on_one_machine, const job::RankPlace& place,
                const job::Environment& environment) {
  const auto secret = environment.find("YOKE_SECRET");
  const auto trusts = environment.find("YOKE_TRUST_NETWORK");
  if (secret != environment.end() && !secret->second.empty()) {
    if (secret->second.size() < kMinSecret) {
      throw Error(ErrorCode::kInvalid, fmt::format("YOKE_SECRET has fewer than {} characters", kMinSecret),
                  "make one with: openssl rand -hex 32");
    }
    meeting.secret = secret->second;
  } else if (on_one_machine) {
    meeting.peers = Rendezvous::Peers::kThisUser;
  } else if (trusts == environment.end() || trusts->second != "1") {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("{} gives ranks on several machines no secret to know each other by", to_string(place.origin)),
        "set YOKE_SECRET to the same text for all ranks (openssl rand -hex 32 makes one), or "
        "YOKE_TRUST_NETWORK=1 where nobody else reaches these machines");
  }
}

// Where the ranks meet. The launcher's own port is taken by the launcher; the next one is ours.
Rendezvous rendezvous_of(const job::RankPlace& place, const job::Environment& environment) {
  Rendezvous meeting{.rank = place.rank, .size = place.size};
  if (place.size == 1) return meeting;
  const bool in_set = place.origin == job::RankOrigin::kLeaderWorkerSet;
  const char* const variable = in_set ? "LWS_LEADER_ADDRESS" : "MASTER_ADDR";
  const auto host = environment.find(variable);
  if (host == environment.end() || host->second.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} did not say where rank 0 is", job::to_string(place.origin)),
                fmt::format("set {} to the name or address of its machine", variable));
  }
  meeting.host = host->second;
  meeting.port = port_of_launcher(environment) + 1;
  const bool on_one_machine = place.local_size == place.size;
  // Ranks of one machine are not to be seen on the network. Others come by any address: rank 0's own idea of its name
  // is often 127.0.1.1.
  if (place.rank == 0 && on_one_machine)
    meeting.listen_on = value_or_throw(resolve_address(meeting.host, Deadline::after(kResolveTime)));
  set_secret(meeting, on_one_machine, place, environment);
  return meeting;
}

// Texts travel in clear: what was read on the way does not make a member.
spec::Membership meet_others(const Rendezvous& meeting, const TellOwn& mine, Deadline deadline) {
  spec::Membership membership = membership_from_texts(meet(meeting, mine, deadline));
  if (!meeting.secret.empty()) membership.token = hmac_sha256_hex(meeting.secret, membership.token);
  return membership;
}

// A rank that the job's supervisor started.
class JobWorld final : public World {
 public:
  JobWorld(const job::RankPlace& place, WorldOptions options)
      : World(place), options_(std::move(options)), channel_(job::RankChannel::from_environment()) {
    if (!channel_) throw Error(ErrorCode::kInvalid, "this rank has no line to its supervisor (YOKE_JOB_FD)");
    const auto reported = options_.communicator.on_path;
    options_.communicator.on_path = [this, reported](const comm::PathEvent& event) {
      report(event);
      if (reported) reported(event);
    };
    // An abort ends what the communicator does; one that comes while there is none yet must be asked for.
    options_.communicator.while_making = [this] { channel_->throw_if_aborted(); };
    group_ = std::make_unique<Group>(comm::DirectListener::open(rails()), place_, options_);
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

  comm::Communicator& comm() override { return group_->comm(); }
  comm::Communicator& control() override { return group_->control(); }
  std::vector<spec::RailEndpoint> endpoints() const override { return group_->endpoints(); }

  bool recovers() const override { return true; }
  void recover(const Error& failure) override {
    const Deadline deadline = Deadline::after(options_.join_limit);
    connect(channel_->rejoin(group_->endpoints(), failure.what(), deadline), deadline);
  }

 private:
  // The one that dies while the group is being made makes a later epoch necessary; the job decides whether there is
  // one.
  void connect(spec::Membership membership, Deadline deadline) {
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

  comm::DirectListener::Rails rails() const {
    comm::DirectListener::Rails rails;
    for (const job::RailAddress& rail : channel_->rails()) rails.emplace_back(rail.rail, rail.address);
    const bool has_other_nodes = place_.size > place_.local_size;
    if (rails.empty() && has_other_nodes) rails.emplace_back("management", channel_->address());
    return rails;
  }

  void report(const comm::PathEvent& event) {
    const bool is_back = event.kind == comm::PathEvent::Kind::kRailBack;
    channel_->report_path(event.peer, event.rail, is_back ? job::PathState::kBack : job::PathState::kLost, event.why);
  }

  WorldOptions options_;
  std::mutex leaving_mutex_;
  bool leaving_ = false;
  std::unique_ptr<job::RankChannel> channel_;
  std::unique_ptr<Group> group_;
};

// A rank whose launcher ends the whole group with the first death.
class LaunchedWorld final : public World {
 public:
  LaunchedWorld(const job::RankPlace& place, const WorldOptions& options) : World(place) {
    if (place_.node.empty()) place_.node = job::this_machine().name;
    const bool by_mpi = place.origin == job::RankOrigin::kOpenMpi || place.origin == job::RankOrigin::kMpich ||
                        place.origin == job::RankOrigin::kSlurm;
    if (by_mpi) {
      mpi_ = comm::mpi::MpiSession::start();
      check_same_place(place, *mpi_);
    }
    if (options.transport == Transport::kMpi || (by_mpi && options.transport == Transport::kAuto)) {
      if (!by_mpi) {
        throw Error(ErrorCode::kUsage,
                    fmt::format("mpi needs ranks that MPI started, not {}", job::to_string(place.origin)),
                    "run it under mpirun, or choose direct");
      }
      comm_ = comm::mpi::make_mpi(mpi_, options.communicator);
      return;
    }
    const Deadline deadline = Deadline::after(options.join_limit);
    const job::Environment environment = job::environment_now();
    const auto mine = [&](const std::string& own_address) {
      auto listener = comm::DirectListener::open(rails_here(environment, options.cluster, own_address));
      group_ = std::make_unique<Group>(std::move(listener), place_, options);
      return member_text(place_.node, group_->endpoints());
    };
    // First, as it makes the group.
    const spec::Membership membership =
        mpi_ ? membership_from_texts(mpi_->exchange(mine(default_address().value_or("")), deadline))
             : meet_others(rendezvous_of(place_, environment), mine, deadline);
    group_->connect(membership, deadline);
  }

  comm::Communicator& comm() override { return comm_ ? *comm_ : group_->comm(); }
  comm::Communicator& control() override { return comm_ ? *comm_ : group_->control(); }
  std::vector<spec::RailEndpoint> endpoints() const override {
    return group_ ? group_->endpoints() : std::vector<spec::RailEndpoint>{};
  }
  std::shared_ptr<comm::mpi::MpiSession> mpi() const override { return mpi_; }

 private:
  std::shared_ptr<comm::mpi::MpiSession> mpi_;
  std::unique_ptr<comm::Communicator> comm_;
  std::unique_ptr<Group> group_;
};

}  // namespace

int World::device() const { return device_of(place_); }
int World::devices() const { return cuda::CudaDriver::get().device_count(); }

const spec::ClusterNode* find_own_node(const spec::Cluster& cluster) {
  const std::vector<Ipv4> own = own_addresses();
  for (const spec::ClusterNode& node : cluster.nodes) {
    for (const Ipv4& address : own) {
      if (node.address == to_string(address)) return &node;
      for (const spec::Rail& rail : node.rails) {
        if (rail.address.address == address) return &node;
      }
    }
  }
  return nullptr;
}

std::unique_ptr<World> join_world(const job::RankPlace& place, WorldOptions options) {
  set_check_rank(place.rank);
  if (place.origin == job::RankOrigin::kYoke) {
    if (options.transport == Transport::kMpi) {
      throw Error(ErrorCode::kUsage, "mpi needs ranks that MPI started", "run it under mpirun, or choose direct");
    }
    return std::make_unique<JobWorld>(place, std::move(options));
  }
  return std::make_unique<LaunchedWorld>(place, options);
}

}  // namespace yoke::rank
