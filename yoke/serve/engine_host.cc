#include "yoke/serve/engine_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <utility>

#include "yoke/engine/engine_sockets.h"
#include "yoke/engine/rank.h"
#include "yoke/job/node_channel.h"
#include "yoke/serve/engine_task.h"

namespace yoke::serve {
using namespace literals;
namespace {

// From the client's end to that of all ranks: a step, and what a transport needs to part.
constexpr Seconds kEndLimit{5};
// The same for ranks in this process after Ctrl-C, which a long prompt would make wait much longer.
constexpr Seconds kThreadLimit{1};
constexpr std::size_t kLinesKept = 20;
// Deaths within a minute that are taken as accidents; one more is a fault that starting again does not mend.
constexpr int kMaxRestarts = 5;

void check_head_is_here(const EngineHostSpec& spec) {
  if (!spec.cluster || remote::is_this_machine(spec.cluster->nodes.front(), 0)) return;
  const spec::ClusterNode& head = spec.cluster->nodes.front();
  throw Error(
      ErrorCode::kUsage,
      fmt::format("this machine is not {} ({}), the head of cluster '{}'", head.name, head.address, spec.cluster->name),
      fmt::format("run it on {}, or name another cluster file with --cluster", head.name));
}

// Nothing leaves a thread: the client reports whatever ended the ranks.
template <class Work>
Error ended_by(const Work& work) {
  try {
    work();
    return Error(ErrorCode::kUnavailable, "the engine has ended");
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kExhausted, "out of memory");
  } catch (const std::exception& unexpected) {
    return Error(ErrorCode::kInternal, fmt::format("unexpected: {}", unexpected.what()), "please report this");
  }
}

}  // namespace

int rank_count(const EngineHostSpec& spec) {
  if (spec.place) return spec.place->size;
  const bool on_nodes = spec.transport != rank::Transport::kThreads;
  return rank::rank_count(spec.ranks, on_nodes ? spec.cluster : std::nullopt, 1);
}

EngineHost::EngineHost(EngineHostSpec spec) : spec_(std::move(spec)) {
  const rank::RankStarter how = rank::rank_starter(spec_.transport, spec_.place);
  if (how == rank::RankStarter::kJob || how == rank::RankStarter::kMpirun) check_head_is_here(spec_);
  const bool in_this_process = how == rank::RankStarter::kThreads || how == rank::RankStarter::kLauncher;
  rank::RanksSpec ranks = in_this_process ? ranks_here() : ranks_elsewhere();
  ranks.starter = how;
  ranks.ranks = rank_count(spec_);
  ranks_ = rank::Ranks::start(std::move(ranks));
  waiting_ = std::async(std::launch::async, [this] {
    const auto ended = ended_by([this] { ranks_->wait(); });
    rank_line_.reset();  // one that stayed open would look like an engine at work
    report_end(with_last_lines(ended));
  });
}

EngineHost::~EngineHost() {
  {
    const std::lock_guard lock(connection_mutex_);
    connection_.reset();  // rank 0 reads the end, and tells the others
  }
  if (!ends_for_ && all_over(Deadline::after(kEndLimit))) return;
  ranks_->stop();
  const bool in_threads = !folder_;  // ranks that are processes have a socket to come to
  if (in_threads && ends_for_ && !all_over(Deadline::after(kThreadLimit))) {
    // A thread cannot be ended from outside, and nothing but this process is left to end.
    _exit(128 + *ends_for_);
  }
  all_over(Deadline::never());
}

// Waits until the deadline. A third interrupt ends the program at once, as everywhere (base/interrupt.h).
bool EngineHost::all_over(Deadline deadline) {
  while (waiting_.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    const auto signal_number = held_.take();
    if (signal_number && ++interrupts_at_end_ >= 3) _exit(128 + *signal_number);
    if (deadline.expired()) return false;
  }
  return true;
}

void EngineHost::end_for(int signal_number) {
  ends_for_ = signal_number;
  ++interrupts_at_end_;
  // Without ranks that a supervisor looks after there is nothing to end gently: logins and mpirun are broken off.
  if (!ranks_started_) job::DeferredSignals::redeliver(signal_number);
}

rank::RanksSpec EngineHost::ranks_here() {
  ranks_started_ = true;
  engine::EngineSocketPair line = engine::make_engine_sockets();
  connection_ = std::make_unique<engine::EngineConnection>(std::move(line.of_client),
                                                           engine::EngineConnection::Ends::kConnection);
  rank_line_ = std::move(line.of_engine);
  return {.place = spec_.place,
          .here =
              [this](rank::World& world) {
                std::optional<Socket> own_line;
                if (world.place().rank == 0) own_line = std::exchange(rank_line_, std::nullopt);
                engine::run_engine_rank(world, spec_.engine, std::move(own_line));
              },
          .world = engine_world(spec_.transport, spec_.cluster)};
}

rank::RanksSpec EngineHost::ranks_elsewhere() {
  ScratchDir::remove_abandoned("yoke-engine");  // what a killed command left
  folder_.emplace("yoke-engine");
  const std::filesystem::path socket = folder_->path() / "client";
  connection_ = std::make_unique<engine::EngineConnection>(listen_unix(socket));
  return {
      .name = "engine",
      .task = {.kind = kEngineKind,
               .content = to_json(EngineTask{
                   .engine = spec_.engine, .transport = spec_.transport, .cluster = spec_.cluster, .client = socket})},
      .cluster = spec_.cluster,
      .policy = job::JobPolicy::kRestart,
      .restarts_max = kMaxRestarts,
      .interrupts = job::JobInterrupts::kLeft,
      .yields = true,
      .on_line = [this](const std::string& line) { keep_line(line); },
      .on_notice = spec_.on_notice,
      .on_restart = spec_.on_rank_lost,
      .on_started = [this] { ranks_started_ = true; },
      .on_node_state = spec_.on_node_state};
}

// ---- what becomes of them

void EngineHost::report_end(const Error& reason) {
  const std::lock_guard lock(connection_mutex_);
  if (connection_) connection_->end(reason);
}

void EngineHost::keep_line(const std::string& line) {
  last_lines_.push_back(line);
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
}

// With what the ranks wrote: the last words of one that fails by itself are often the reason.
Error EngineHost::with_last_lines(const Error& error) const {
  if (last_lines_.empty()) return error;
  return Error(error.code(), fmt::format("{}\n{}", error.message(), fmt::join(last_lines_, "\n")), error.hint());
}

std::optional<Error> follow_engine(const job::RankPlace& place, const EngineHostSpec& spec) {
  std::optional<Error> ended;
  const auto follow = [&](rank::World& world) {
    try {
      engine::run_engine_rank(world, spec.engine, std::nullopt);
    } catch (const Error& error) {
      ended = error;
    }
  };
  rank::Ranks::start({.starter = rank::RankStarter::kLauncher,
                      .place = place,
                      .here = follow,
                      .world = engine_world(spec.transport, spec.cluster)})
      ->wait();
  return ended;
}

}  // namespace yoke::serve
