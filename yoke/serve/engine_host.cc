#include "yoke/serve/engine_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/hash.h"
#include "yoke/comm/local/local.h"
#include "yoke/engine/rank.h"
#include "yoke/job/node_channel.h"
#include "yoke/rank/local_world.h"
#include "yoke/rank/mpirun.h"
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

struct Line {
  Socket front, rank;
};
Line make_line() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    throw system_error(errno, "cannot make a line to the engine");
  }
  return {Socket(UniqueFd(ends[0]), "the engine"), Socket(UniqueFd(ends[1]), "the front")};
}

void check_head_is_here(const EngineHostSpec& spec) {
  if (!spec.cluster || is_this_machine(spec.cluster->nodes.front(), 0)) return;
  const ClusterNode& head = spec.cluster->nodes.front();
  throw Error(
      ErrorCode::kUsage,
      fmt::format("this machine is not {} ({}), the head of cluster '{}'", head.name, head.address, spec.cluster->name),
      fmt::format("run it on {}, or name another cluster file with --cluster", head.name));
}

}  // namespace

int rank_count(const EngineHostSpec& spec) {
  if (spec.place) return spec.place->size;
  if (spec.ranks > 0) return spec.ranks;
  const bool on_nodes = spec.cluster && spec.transport != Transport::kThreads;
  return on_nodes ? static_cast<int>(spec.cluster->nodes.size()) : 1;
}

EngineHost::EngineHost(EngineHostSpec spec) : spec_(std::move(spec)) {
  const int count = rank_count(spec_);
  const bool in_threads = spec_.transport == Transport::kThreads;
  if (!spec_.place && !in_threads) check_head_is_here(spec_);
  if (spec_.place) {
    start_launched();
  } else if (spec_.transport == Transport::kMpi) {
    start_mpirun(count);
  } else if (in_threads || count == 1) {
    start_threads(count);
  } else {
    start_job(count);
  }
}

EngineHost::~EngineHost() {
  {
    const std::lock_guard lock(front_mutex_);
    front_.reset();  // rank 0 reads the end, and tells the others
  }
  if (!ends_for_ && all_over(Deadline::after(kEndLimit))) return;
  if (job_) job_->stop();
  const bool in_threads = !folder_;  // ranks that are processes have a socket to come to
  if (in_threads && ends_for_ && !all_over(Deadline::after(kThreadLimit))) {
    // A thread cannot be ended from outside, and nothing but this process is left to end.
    _exit(128 + *ends_for_);
  }
  all_over(Deadline::never());
}

// Waits until the deadline. A third interrupt ends the program at once, as everywhere (base/interrupt.h).
bool EngineHost::all_over(Deadline deadline) {
  for (const std::future<void>& one : background_) {
    while (one.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      const auto signal_number = held_.take();
      if (signal_number && ++interrupts_at_end_ >= 3) _exit(128 + *signal_number);
      if (deadline.expired()) return false;
    }
  }
  return true;
}

void EngineHost::end_for(int signal_number) {
  ends_for_ = signal_number;
  ++interrupts_at_end_;
  // Without ranks that a supervisor looks after there is nothing to end gently: logins and mpirun are broken off.
  if (!ranks_started_) HeldInterrupts::raise_again(signal_number);
}

// Nothing leaves a thread: whatever ends the work is the front's to tell. What the work holds goes with it: an end of
// the front's line that stayed open would look like an engine at work.
template <class Work>
void EngineHost::in_background(Work work) {
  background_.push_back(std::async(std::launch::async, [this, work = std::move(work)]() mutable {
    try {
      [own = std::move(work)]() mutable { own(); }();
      report_end(Error(ErrorCode::kUnavailable, "the engine has ended"));
    } catch (const Error& error) {
      report_end(error);
    } catch (const std::bad_alloc&) {
      report_end(Error(ErrorCode::kExhausted, "out of memory"));
    } catch (const std::exception& unexpected) {
      report_end(Error(ErrorCode::kInternal, fmt::format("unexpected: {}", unexpected.what()), "please report this"));
    }
  }));
}

// ---- the kinds of ranks

void EngineHost::start_threads(int count) {
  ranks_started_ = true;
  Line line = make_line();
  front_ = std::make_unique<Front>(std::move(line.front), Front::Ends::kConnection);
  auto ranks = make_local(count);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::optional<Socket> own_line;
    if (rank == 0) own_line = std::move(line.rank);
    in_background([this, comm = std::move(ranks[rank]), own_line = std::move(own_line)]() mutable {
      const auto world = make_local_world(std::move(comm));
      run_engine_rank(*world, spec_.engine, std::move(own_line));
    });
  }
}

void EngineHost::start_launched() {
  ranks_started_ = true;
  Line line = make_line();
  front_ = std::make_unique<Front>(std::move(line.front), Front::Ends::kConnection);
  in_background([this, own_line = std::move(line.rank)]() mutable {
    // Joined in this thread: an MPI may want all calls from the one that began.
    const auto world = join_engine_world(*spec_.place, spec_.transport, spec_.cluster);
    run_engine_rank(*world, spec_.engine, std::move(own_line));
  });
}

void EngineHost::start_job(int count) {
  listen();
  const std::vector<ClusterNode> nodes = spec_.cluster ? spec_.cluster->nodes : std::vector{this_machine()};
  job_.emplace(JobSpec{.name = fmt::format("engine-{}", random_token_hex(3)),
                       .nodes = spread_ranks(nodes, count),
                       .argv = {"yoke", kEnginePart},
                       .own_program = true,
                       .environment = {{kEngineTaskVariable, task_text()}},
                       .policy = JobPolicy::kRestart,
                       .restarts_most = kRestartsMost,
                       .interrupts = JobInterrupts::kLeft,
                       .on_output =
                           [this](const RankOutput& output) {
                             keep_line(fmt::format("{}/{} | {}", output.node, output.rank, output.text));
                           },
                       .on_event = [this](const JobEvent& event) { take_event(event); }});
  in_background([this] {
    const JobOutcome outcome = job_->wait();
    if (outcome.cause) throw with_last_lines(outcome.cause->error);
  });
}

void EngineHost::start_mpirun(int count) {
  listen();
  in_background([this, count] {
    const auto keep = [this](std::string_view line) { keep_line(std::string(line)); };
    try {
      run_under_mpirun({.ranks = count,
                        .cluster = spec_.cluster,
                        .part = kEnginePart,
                        .variable = kEngineTaskVariable,
                        .task = task_text(),
                        .yields = true,
                        .on_output = keep,
                        .on_error_line = keep});
    } catch (const Error& error) {
      throw with_last_lines(error);
    }
  });
}

void EngineHost::listen() {
  folder_.emplace("yoke-engine");
  socket_ = folder_->path() / "front";
  front_ = std::make_unique<Front>(listen_unix(socket_));
}

std::string EngineHost::task_text() const {
  return print_task({.engine = spec_.engine, .transport = spec_.transport, .cluster = spec_.cluster, .front = socket_});
}

// ---- what becomes of them

void EngineHost::report_end(const Error& reason) {
  const std::lock_guard lock(front_mutex_);
  if (front_) front_->end(reason);
}

void EngineHost::keep_line(std::string line) {
  last_lines_.push_back(std::move(line));
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
}

void EngineHost::take_event(const JobEvent& event) {
  if (event.kind == JobEvent::Kind::kRanksStarted) ranks_started_ = true;
  const bool is_news = event.kind == JobEvent::Kind::kNotice || event.kind == JobEvent::Kind::kRestart;
  if (is_news && spec_.on_notice) spec_.on_notice(event.text);
}

// With what the ranks wrote: the last words of one that fails by itself are often the reason.
Error EngineHost::with_last_lines(const Error& error) const {
  if (last_lines_.empty()) return error;
  return Error(error.code(), fmt::format("{}\n{}", error.message(), fmt::join(last_lines_, "\n")), error.hint());
}

std::optional<Error> follow_engine(const RankPlace& place, const EngineHostSpec& spec) {
  const auto world = join_engine_world(place, spec.transport, spec.cluster);
  try {
    run_engine_rank(*world, spec.engine, std::nullopt);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace yoke
