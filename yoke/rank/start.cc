#include "yoke/rank/start.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/comm/local/local.h"
#include "yoke/rank/local_world.h"
#include "yoke/rank/mpirun.h"
#include "yoke/rank/rank_part.h"

namespace yoke::rank {
namespace {

std::string task_text(const RankTask& task) { return print_json(task.content, JsonLayout::kOneLine); }

void pass_line(const RanksSpec& spec, const std::string& line) {
  if (spec.on_line) return spec.on_line(line);
  fmt::print(stderr, "{}\n", line);
}

class ThreadRanks final : public Ranks {
 public:
  explicit ThreadRanks(RanksSpec spec)
      : spec_(std::move(spec)), comms_(comm::local::make_local(spec_.ranks, spec_.world.communicator)) {
    for (std::size_t rank = 1; rank < comms_.size(); ++rank) {
      others_.emplace_back([this, comm = std::move(comms_[rank])]() mutable { run(std::move(comm)); });
    }
  }

  void wait() override {
    run(std::move(comms_[0]));
    others_.clear();  // joins
    if (first_failure_) std::rethrow_exception(first_failure_);
  }

 private:
  // Entry of a thread: nothing leaves it. The failure is kept before the communicator goes, because the others then
  // fail for want of this rank.
  void run(std::unique_ptr<comm::Communicator> comm) {
    const auto world = make_local_world(std::move(comm));
    try {
      spec_.here(*world);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_failure_) first_failure_ = std::current_exception();
    }
  }

  const RanksSpec spec_;
  std::mutex mutex_;
  std::exception_ptr first_failure_;
  std::vector<std::jthread> others_;
  // Goes first: where rank 0 never ran, the end of its communicator ends the others.
  std::vector<std::unique_ptr<comm::Communicator>> comms_;
};

// Joins in the thread that waits: an MPI may want all calls from the thread that began.
class LaunchedRank final : public Ranks {
 public:
  explicit LaunchedRank(RanksSpec spec) : spec_(std::move(spec)) {}
  void wait() override {
    const auto world = join_world(*spec_.place, spec_.world);
    spec_.here(*world);
  }

 private:
  const RanksSpec spec_;
};

class JobRanks final : public Ranks {
 public:
  explicit JobRanks(RanksSpec spec) : spec_(std::move(spec)), job_(job_spec()) {}

  void wait() override {
    const job::JobOutcome outcome = job_.wait();
    if (outcome.cause) throw Error(outcome.cause->error);
  }
  void stop() override { job_.stop(); }

 private:
  job::JobSpec job_spec() const {
    const std::vector<spec::ClusterNode> nodes =
        spec_.cluster ? spec_.cluster->nodes : std::vector{job::this_machine()};
    return {.name = fmt::format("{}-{}", spec_.name, random_token_hex(3)),
            .nodes = job::spread_ranks(nodes, spec_.ranks),
            .argv = {"yoke", kRankWord, spec_.task.kind},
            .own_program = true,
            .environment = {{kRankTaskVariable, task_text(spec_.task)}},
            .policy = spec_.policy,
            .restarts_max = spec_.restarts_max,
            .oversubscribe = spec_.oversubscribe,
            .oversubscribe_option = spec_.oversubscribe_option,
            .interrupts = spec_.interrupts,
            .output_form = spec_.on_output ? job::OutputForm::kFirstRankRaw : job::OutputForm::kLines,
            .on_output = [this](const job::RankOutput& output) { take_output(output); },
            .on_event = [this](const job::JobEvent& event) { take_event(event); },
            .on_node_state = spec_.on_node_state,
            .reached = spec_.reached};
  }
  void take_output(const job::RankOutput& output) const {
    const bool is_answer = spec_.on_output && output.rank == 0 && output.stream == OutputStream::kOut;
    if (is_answer) return spec_.on_output(output.text);
    pass_line(spec_, fmt::format("{}/{} | {}", output.node, output.rank, output.text));
  }
  void take_event(const job::JobEvent& event) const {
    const bool is_notice = event.kind == job::JobEvent::Kind::kNotice || event.kind == job::JobEvent::Kind::kRestart;
    if (is_notice && spec_.on_notice) spec_.on_notice(event.text);
    if (event.kind == job::JobEvent::Kind::kRestart && spec_.on_restart) spec_.on_restart(event.rank);
    if (event.kind == job::JobEvent::Kind::kRanksStarted && spec_.on_started) spec_.on_started();
  }

  const RanksSpec spec_;
  job::Job job_;
};

class MpirunRanks final : public Ranks {
 public:
  explicit MpirunRanks(RanksSpec spec) : spec_(std::move(spec)) {}
  void wait() override {
    const auto line = [this](std::string_view text) { pass_line(spec_, std::string(text)); };
    run_under_mpirun({.ranks = spec_.ranks,
                      .cluster = spec_.cluster,
                      .arguments = {kRankWord, spec_.task.kind},
                      .variable = kRankTaskVariable,
                      .task = task_text(spec_.task),
                      .yields = spec_.yields,
                      .on_output =
                          [&](std::string_view text) {
                            if (!spec_.on_output) return line(text);
                            spec_.on_output(std::string(text) + "\n");
                          },
                      .on_error_line = line});
  }

 private:
  const RanksSpec spec_;
};

}  // namespace

RankStarter rank_starter(Transport transport, const std::optional<job::RankPlace>& place) {
  if (place) return RankStarter::kLauncher;
  if (transport == Transport::kThreads) return RankStarter::kThreads;
  return transport == Transport::kMpi ? RankStarter::kMpirun : RankStarter::kJob;
}

int rank_count(int wanted, const std::optional<spec::Cluster>& cluster, int alone) {
  if (wanted > 0) return wanted;
  return cluster ? static_cast<int>(cluster->nodes.size()) : alone;
}

std::unique_ptr<Ranks> Ranks::start(RanksSpec spec) {
  switch (spec.starter) {
    case RankStarter::kThreads:
      return std::make_unique<ThreadRanks>(std::move(spec));
    case RankStarter::kLauncher:
      return std::make_unique<LaunchedRank>(std::move(spec));
    case RankStarter::kMpirun:
      return std::make_unique<MpirunRanks>(std::move(spec));
    default:
      return std::make_unique<JobRanks>(std::move(spec));
  }
}

}  // namespace yoke::rank
