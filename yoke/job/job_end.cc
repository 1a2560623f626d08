// The other half of JobLoop: groups, failures, restarts, and the end.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/base/interrupt.h"
#include "yoke/job/job_loop.h"

namespace yoke::job {
using namespace literals;
namespace {

// Beyond the grace: what the kernel needs to end processes, and ssh to say so.
constexpr Seconds kEndLimit{4};
constexpr Seconds kShowLimit{1};

bool is_lasting_refusal(int exit_status) {
  using E = ErrorCode;
  const auto codes = {E::kUsage, E::kInvalid, E::kNotFound, E::kPermission, E::kUnsupported};
  return std::any_of(codes.begin(), codes.end(), [&](E code) { return info(code).exit_status == exit_status; });
}

}  // namespace

void JobLoop::poll_once() {
  check_interrupts();
  check_time_limit();
  const bool alive = phase_ == Phase::kStarting || phase_ == Phase::kRunning;
  if (stop_wanted_ && alive) {
    begin_end(JobCause{.kind = CauseKind::kStopped,
                       .exit_status = info(ErrorCode::kInterrupted).exit_status,
                       .error = Error(ErrorCode::kInterrupted, "the job was stopped")});
  }
  if (phase_ == Phase::kStarting) begin_running();
  if (phase_ == Phase::kRunning) {
    const Instant now = real_clock().now();
    for (std::string& text : diagnosis_->take_notices(now)) notice({JobEvent::Kind::kNotice, std::move(text)});
    if (const auto cause = diagnosis_->verdict(now)) {
      handle_cause(*cause);
    } else if (!diagnosis_->has_evidence() &&
               std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.is_over(); })) {
      begin_end(std::nullopt);
    } else if (auto vain = find_useless_wait()) {
      begin_end(std::move(vain));
    }
  }
  if (phase_ == Phase::kEnding) take_end();
}

void JobLoop::check_interrupts() {
  if (!held_) return;
  const std::optional<int> number = held_->take();
  if (number) {
    // The third ends the program at once, as everywhere (base/interrupt.h); the supervisors then end by themselves.
    if (++interrupts_taken_ >= 3) _exit(128 + *number);
    if (!interrupt_) interrupt_ = number;
    // While nodes are being reached there is nothing to end gently, but a login to break off.
    if (phase_ == Phase::kStarting) DeferredSignals::redeliver(*number);
  } else if (!interrupt_ && interrupt_signal() != 0) {
    interrupt_ = interrupt_signal();
  }
  if (!interrupt_ || phase_ == Phase::kEnding || phase_ == Phase::kDone) return;
  begin_end(JobCause{.kind = CauseKind::kStopped,
                     .exit_status = 128 + *interrupt_,
                     .error = Error(ErrorCode::kInterrupted, "the job was interrupted")});
}

void JobLoop::check_time_limit() {
  if (!time_limit_.expired() || phase_ == Phase::kEnding || phase_ == Phase::kDone) return;
  const Error error(ErrorCode::kTimeout, fmt::format("the job took longer than {}", yoke::to_string(*spec_.time_limit)),
                    "give it a longer --timeout");
  begin_end(JobCause{.kind = CauseKind::kTimeLimit, .exit_status = error.exit_status(), .error = error});
}

void JobLoop::notify_all(const Message& message) {
  for (Node& node : nodes_) {
    if (node.hello && !node.lost && !node.gone) node.channel->send(message);
  }
}

// ---- groups

void JobLoop::take_join(const Join& join) {
  Rank& rank = ranks_[static_cast<std::size_t>(join.rank)];
  if (rank.restarting) return;
  if (rank.in_group) diagnosis_->group_left(join, real_clock().now());
  rank.in_group = false;
  rank.join = join;
  send_membership();
}

void JobLoop::send_membership() {
  const bool complete = std::all_of(ranks_.begin(), ranks_.end(),
                                    [](const Rank& rank) { return rank.join && !rank.restarting && !rank.ended; });
  if (!complete || diagnosis_->has_evidence()) return;
  spec::Membership membership{.epoch = ++epoch_, .token = token_, .members = {}};
  reports_from_ = epoch_;
  for (Rank& rank : ranks_) {
    membership.members.push_back({node_name(rank.node), rank.join->endpoints});
    rank.join.reset();
    rank.in_group = true;
  }
  notify_all(membership_message(membership));
}

// Who has ended well does not come again: a rank that was started again, or that others left behind, would wait for it
// for ever.
std::optional<JobCause> JobLoop::find_useless_wait() const {
  const auto waiting = std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.join; });
  const auto over =
      std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.is_over() && !rank.is_missing(); });
  if (diagnosis_->has_evidence() || waiting == ranks_.end() || over == ranks_.end()) return std::nullopt;
  const int rank = static_cast<int>(waiting - ranks_.begin());
  const Error error(ErrorCode::kUnavailable,
                    fmt::format("rank {} on {} waits for a group, but rank {} on {} has ended", rank,
                                node_name(waiting->node), over - ranks_.begin(), node_name(over->node)));
  return JobCause{.kind = CauseKind::kGroupLost,
                  .node = node_name(waiting->node),
                  .rank = rank,
                  .exit_status = error.exit_status(),
                  .error = error};
}

// ---- failures

// Slurm ends what runs in an allocation by signals. Which of their effects comes here first is chance, and none of them
// is the cause.
std::optional<JobCause> JobLoop::find_ended_allocation(const JobCause& cause) const {
  constexpr int kStatusOfSignals = 128;
  switch (cause.kind) {
    case CauseKind::kRankExited:
      if (cause.exit_status <= kStatusOfSignals) return std::nullopt;
      break;
    case CauseKind::kRankKilled:
    case CauseKind::kNodeDead:
    case CauseKind::kChannelGone:
    case CauseKind::kSupervisorEnded:
      break;
    default:
      return std::nullopt;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (node_name(static_cast<int>(i)) != cause.node) continue;
    const auto error = nodes_[i].channel->ended_allocation();
    if (!error) return std::nullopt;
    return JobCause{
        .kind = CauseKind::kChannelGone, .node = cause.node, .exit_status = error->exit_status(), .error = *error};
  }
  return std::nullopt;
}

void JobLoop::handle_cause(const JobCause& cause) {
  if (auto ended = find_ended_allocation(cause)) return begin_end(std::move(ended));
  if (spec_.policy == JobPolicy::kStop || !may_restart(cause)) return begin_end(cause);
  const Instant now = real_clock().now();
  std::erase_if(restarts_, [&](Instant at) { return to_seconds(now - at) > spec_.restart_window; });
  const int total = std::max(spec_.restarts_total, spec_.restarts_max);
  const bool too_often = static_cast<int>(restarts_.size()) >= spec_.restarts_max;
  if (too_often || outcome_.restarts >= total) {
    const std::string limit =
        too_often
            ? fmt::format("{} restarts within {} are the most", spec_.restarts_max, to_string(spec_.restart_window))
            : fmt::format("it was restarted {} times, which is the limit for one job", outcome_.restarts);
    JobCause last = cause;
    last.error = Error(cause.error.code(), fmt::format("{} ({})", cause.error.message(), limit), cause.error.hint());
    return begin_end(std::move(last));
  }
  restarts_.push_back(now);
  restart(cause);
}

// A dead node or a cut cable is not mended by starting anything, and neither is what yoke itself refuses: an input that
// is wrong, missing, closed to it or not supported here stays so.
bool JobLoop::may_restart(const JobCause& cause) {
  switch (cause.kind) {
    case CauseKind::kRankExited:
      return !spec_.own_program || !is_lasting_refusal(cause.exit_status);
    case CauseKind::kRankKilled:
    case CauseKind::kOutOfMemory:
    case CauseKind::kRankStopped:
    case CauseKind::kGroupLost:
    case CauseKind::kChannelGone:
    case CauseKind::kSupervisorEnded:
      return true;
    default:
      return false;
  }
}

void JobLoop::restart(const JobCause& cause) {
  ++outcome_.restarts;
  notify_all(error_message(MessageType::kAbort, cause.error));
  std::vector<RankList> missing(nodes_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    Node& node = nodes_[static_cast<std::size_t>(rank.node)];
    rank.in_group = false;
    if (!node.lost && !rank.is_missing()) continue;
    rank = {.node = rank.node, .restarting = true};
    if (!node.lost) missing[static_cast<std::size_t>(rank.node)].ranks.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.lost && node.finished) {
      node.lost = node.gone = node.finished = false;
      node.hello.reset();
      open_channel(i);
    } else if (node.lost) {
      node.reopening = true;  // once what is left there has been ended
    } else if (!missing[i].ranks.empty()) {
      node.channel->send(to_message(MessageType::kRestart, missing[i]));
    }
  }
  diagnosis_->reset();
  reports_from_ = epoch_ + 1;
  notice({JobEvent::Kind::kRestart,
          fmt::format("{}: restarting the lost ranks ({} of {} within {})", cause.error.message(), restarts_.size(),
                      spec_.restarts_max, yoke::to_string(spec_.restart_window)),
          cause.rank});
  send_membership();
}

// ---- the end

void JobLoop::begin_end(std::optional<JobCause> cause) {
  if (phase_ == Phase::kEnding || phase_ == Phase::kDone) return;
  phase_ = Phase::kEnding;
  end_deadline_ = Deadline::after(spec_.grace + kEndLimit);
  notify_all(cause ? error_message(MessageType::kStop, cause->error) : Message{MessageType::kStop});
  for (Node& node : nodes_) {
    if (!node.hello || node.lost) node.channel->finish();
  }
  outcome_.exit_status = cause ? cause->exit_status : 0;
  outcome_.cause = std::move(cause);
}

void JobLoop::take_end() {
  if (end_deadline_->expired()) {
    for (Node& node : nodes_) node.channel->finish();
  }
  if (std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.finished; })) {
    phase_ = Phase::kDone;
  }
}

// The ranks are gone, but the one that shows their output may be held up by a reader that does not read (a pager). An
// interrupt then has nobody else to take it, and must still end the program.
void JobLoop::wait_until_shown(std::optional<int> interrupt) {
  std::optional<Deadline> patience;
  while (!shown_) {
    inbox_.pop(Deadline::after(50_ms));
    if (const auto number = held_ ? held_->take() : std::nullopt) interrupt = number;
    if (!interrupt) continue;
    if (!patience) patience = Deadline::after(kShowLimit);
    if (patience->expired()) _exit(128 + *interrupt);
  }
}

}  // namespace yoke::job
