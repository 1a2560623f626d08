#include "yoke/serve/engine_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <utility>

#include "yoke/engine/line.h"
#include "yoke/engine/rank.h"
#include "yoke/job/node_channel.h"
#include "yoke/serve/engine_task.h"

namespace yoke {
using namespace literals;
namespace {

// From the front's end to that of all ranks: a step, and what a transport needs to part.
constexpr Seconds kEndLimit{5};
// The same for ranks in this process after Ctrl-C, which a long prompt would make wait much longer.
constexpr Seconds kThreadLimit{1};
constexpr std::size_t kLinesKept = 20;
// Deaths within a minute that are taken as accidents; one more is a fault that starting again does not mend.
constexpr int kRestartsMost = 5;

void check_head_is_here(const EngineHostSpec& spec) {
  if (!spec.cluster || is_this_machine(spec.cluster->nodes.front(), 0)) return;
  const ClusterNode& head = spec.cluster->nodes.front();
  throw Error(
      ErrorCode::kUsage,
      fmt::format("this machine is not {} ({}), the head of cluster '{}'", head.name, head.address, spec.cluster->name),
      fmt::format("run it on {}, or name another cluster file with --cluster", head.name));
}

// Nothing leaves a thread: the front reports whatever ended the ranks.
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
  const bool on_nodes = spec.transport != Transport::kThreads;
  return rank_count(spec.ranks, on_nodes ? spec.cluster : std::nullopt, 1);
}

EngineHost::EngineHost(EngineHostSpec spec) : spec_(std::move(spec)) {
  RankStarter how = rank_starter(spec_.transport, spec_.place);
  if (how == RankStarter::kJob || how == RankStarter::kMpirun) check_head_is_here(spec_);
  if (how == RankStarter::kJob && rank_count(spec_) == 1) how = RankStarter::kThreads;  // nobody to talk to
  const bool in_this_process = how == RankStarter::kThreads || how == RankStarter::kLauncher;
  RanksSpec ranks = in_this_process ? ranks_here() : ranks_elsewhere();
  ranks.starter = how;
  ranks.ranks = rank_count(spec_);
  ranks_ = Ranks::start(std::move(ranks));
  waiting_ = std::async(std::launch::async, [this] {
    const auto ended = ended_by([this] { ranks_->wait(); });
    rank_line_.reset();  // one that stayed open would look like an engine at work
    report_end(with_last_lines(ended));
  });
}

EngineHost::~EngineHost() {
  {
    const std::lock_guard lock(front_mutex_);
    front_.reset();  // rank 0 reads the end, and tells the others
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
  if (!ranks_started_) HeldInterrupts::raise_again(signal_number);
}

RanksSpec EngineHost::ranks_here() {
  ranks_started_ = true;
  EngineLine line = make_engine_line();
  front_ = std::make_unique<Front>(std::move(line.of_front), Front::Ends::kConnection);
  rank_line_ = std::move(line.of_engine);
  return {.place = spec_.place,
          .here =
              [this](World& world) {
                std::optional<Socket> own_line;
                if (world.place().rank == 0) own_line = std::exchange(rank_line_, std::nullopt);
                run_engine_rank(world, spec_.engine, std::move(own_line));
              },
          .world = engine_world(spec_.transport, spec_.cluster)};
}

RanksSpec EngineHost::ranks_elsewhere() {
  folder_.emplace("yoke-engine");
  const std::filesystem::path socket = folder_->path() / "front";
  front_ = std::make_unique<Front>(listen_unix(socket));
  return {
      .name = "engine",
      .task = {.kind = kEngineKind,
               .content = to_json(EngineTask{
                   .engine = spec_.engine, .transport = spec_.transport, .cluster = spec_.cluster, .front = socket})},
      .cluster = spec_.cluster,
      .policy = JobPolicy::kRestart,
      .restarts_most = kRestartsMost,
      .interrupts = JobInterrupts::kLeft,
      .yields = true,
      .on_line = [this](const std::string& line) { keep_line(line); },
      .on_notice = spec_.on_notice,
      .on_started = [this] { ranks_started_ = true; }};
}

// ---- what becomes of them

void EngineHost::report_end(const Error& reason) {
  const std::lock_guard lock(front_mutex_);
  if (front_) front_->end(reason);
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

std::optional<Error> follow_engine(const RankPlace& place, const EngineHostSpec& spec) {
  std::optional<Error> ended;
  const auto follow = [&](World& world) {
    try {
      run_engine_rank(world, spec.engine, std::nullopt);
    } catch (const Error& error) {
      ended = error;
    }
  };
  Ranks::start({.starter = RankStarter::kLauncher,
                .place = place,
                .here = follow,
                .world = engine_world(spec.transport, spec.cluster)})
      ->wait();
  return ended;
}

}  // namespace yoke
