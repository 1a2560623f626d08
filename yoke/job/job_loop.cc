#include "yoke/job/job_loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/text.h"

namespace yoke::job {
using namespace literals;
namespace {

constexpr Seconds kTurn{0.05};
// More ranks than this for each core is a mistake, or must be said to be meant.
constexpr int kRanksPerCore = 4;

int count_ranks(const JobSpec& spec) {
  int count = 0;
  for (const JobNode& node : spec.nodes) count += node.ranks;
  return count;
}

JobRecord record_of(const JobSpec& spec) {
  JobRecord record{.name = spec.name, .since = utc_now(), .ranks = count_ranks(spec)};
  record.head = living_process(getpid()).value_or(ProcessId{getpid(), 0});
  for (const JobNode& node : spec.nodes) record.nodes.push_back(node.node.name);
  record.command = yoke::to_string(Command{.argv = spec.argv});
  return record;
}

DiagnosedNode diagnosed_node(const spec::ClusterNode& node) {
  DiagnosedNode diagnosed{node.name, static_cast<int>(node.rails.size())};
  for (const spec::Rail& rail : node.rails)
    diagnosed.places.push_back({rail.interface, yoke::to_string(rail.address.network())});
  return diagnosed;
}

}  // namespace

JobLoop::JobLoop(JobSpec spec)
    : spec_(std::move(spec)),
      id_(random_token_hex(8)),
      token_(random_token_hex(16)),
      master_(choose_master(spec_.nodes)),
      program_(std::make_shared<remote::ProgramFile>(spec_.program)),
      nodes_(spec_.nodes.size()),
      time_limit_(spec_.time_limit ? Deadline::after(*spec_.time_limit) : Deadline::never()),
      credit_(nodes_.size()) {
  if (spec_.interrupts == JobInterrupts::kEndTheJob) held_.emplace();
  record_.emplace(record_of(spec_));
  std::vector<DiagnosedNode> diagnosed;
  std::vector<int> node_of_rank;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].first_rank = static_cast<int>(ranks_.size());
    diagnosed.push_back(diagnosed_node(spec_.nodes[i].node));
    for (int rank = 0; rank < spec_.nodes[i].ranks; ++rank) {
      ranks_.push_back({.node = static_cast<int>(i)});
      node_of_rank.push_back(static_cast<int>(i));
    }
  }
  diagnosis_.emplace(std::move(diagnosed), std::move(node_of_rank));
  for (std::size_t i = 0; i < nodes_.size(); ++i) open_channel(i);
  thread_ = std::thread([this] { run(); });
}

JobLoop::~JobLoop() {
  stop();
  note_shown();
  thread_.join();
}

void JobLoop::stop() {
  stop_wanted_ = true;
  inbox_.wake();
}

void JobLoop::note_shown() {
  shown_ = true;
  inbox_.wake();
}

void JobLoop::return_credit(int node, std::int64_t bytes) {
  {
    const std::lock_guard lock(credit_mutex_);
    credit_[static_cast<std::size_t>(node)] += bytes;
  }
  inbox_.wake();
}

void JobLoop::send_credit() {
  const std::lock_guard lock(credit_mutex_);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (credit_[i] > 0) nodes_[i].channel->send(to_message(MessageType::kCredit, Credit{std::exchange(credit_[i], 0)}));
  }
}

void JobLoop::open_channel(std::size_t node) {
  const int index = static_cast<int>(node);
  const int opening = ++nodes_[node].openings;
  // A node whose channel was lost is reached again.
  std::shared_ptr<yoke::fleet::Node> reached;
  for (const auto& candidate : spec_.reached) {
    if (opening == 1 && candidate->name() == spec_.nodes[node].node.name) reached = candidate;
  }
  if (!reached)
    reached =
        std::make_shared<yoke::fleet::Node>(spec_.nodes[node].node, index, fleet::NodeOptions{.program = program_});
  nodes_[node].channel = std::make_unique<NodeChannel>(
      ChannelOptions{.index = index, .node = std::move(reached), .tag = fmt::format("{}-{}.", id_, opening)}, inbox_);
}

void JobLoop::fail(const Error& error) {
  outcome_.cause = JobCause{.kind = CauseKind::kNotStarted, .exit_status = error.exit_status(), .error = error};
  outcome_.exit_status = error.exit_status();
}

// Entry of the thread: nothing leaves it.
void JobLoop::run() {
  try {
    while (phase_ != Phase::kDone) {
      auto event = inbox_.pop(Deadline::after(kTurn));
      for (; event; event = inbox_.pop(Deadline::after(0_s))) handle(*event);
      send_credit();
      poll_once();
    }
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& failure) {
    fail(Error(ErrorCode::kInternal, failure.what(), "please report this"));
  }
  for (Node& node : nodes_) node.channel->finish();
  for (Node& node : nodes_) node.channel.reset();
  const std::optional<int> interrupt = interrupt_;  // ours no more once the deliveries are closed
  deliveries_.close();
  wait_until_shown(interrupt);
}

// ---- what comes

void JobLoop::handle(const ChannelEvent& event) {
  const auto index = static_cast<std::size_t>(event.node);
  Node& node = nodes_[index];
  switch (event.kind) {
    case ChannelEvent::Kind::kHeard:
      return diagnosis_->node_heard(event.node, real_clock().now());
    case ChannelEvent::Kind::kMessage:
      diagnosis_->node_heard(event.node, real_clock().now());
      try {
        return take(index, event.message);
      } catch (const Error& error) {
        const Error named(error.code(),
                          fmt::format("{} sent what makes no sense: {}", node_name(event.node), error.message()),
                          error.hint());
        return lose_node(index, CauseKind::kSupervisorEnded, named);
      }
    case ChannelEvent::Kind::kFailed:
      return lose_node(index, CauseKind::kSupervisorEnded, *event.error);
    case ChannelEvent::Kind::kSupervisorEnded:
      return lose_node(index, CauseKind::kSupervisorEnded, *event.error);
    case ChannelEvent::Kind::kNodeDead:
      return lose_node(index, CauseKind::kNodeDead, *event.error);
    case ChannelEvent::Kind::kChannelGone:
      return lose_node(index, CauseKind::kChannelGone, *event.error);
    case ChannelEvent::Kind::kFinished:
      node.finished = true;
      if (!node.reopening || phase_ != Phase::kRunning) return;
      node.reopening = node.lost = node.gone = node.finished = false;
      node.hello.reset();
      return open_channel(index);
  }
}

void JobLoop::lose_node(std::size_t index, CauseKind kind, const Error& error) {
  Node& node = nodes_[index];
  node.lost = true;
  if (phase_ == Phase::kStarting) {
    node.refusal = error;
  } else if (phase_ == Phase::kRunning) {
    diagnosis_->node_lost(static_cast<int>(index), kind, error, real_clock().now());
  }
  node.channel->finish();
}

JobLoop::Rank* JobLoop::find_rank(std::size_t node, int number) {
  const bool is_there = number >= 0 && number < static_cast<int>(ranks_.size()) &&
                        ranks_[static_cast<std::size_t>(number)].node == static_cast<int>(node);
  if (!is_there) throw Error(ErrorCode::kInvalid, fmt::format("rank {} is not one of its ranks", number));
  return &ranks_[static_cast<std::size_t>(number)];
}

void JobLoop::take(std::size_t index, const Message& message) {
  switch (message.type) {
    case MessageType::kHello:
      return greet(index, read_payload<Hello>(message));
    case MessageType::kFailed: {
      const Error error = read_error(message);
      return begin_end(JobCause{.kind = CauseKind::kNotStarted,
                                .node = node_name(static_cast<int>(index)),
                                .exit_status = error.exit_status(),
                                .error = error});
    }
    case MessageType::kGone:
      nodes_[index].gone = true;
      if (phase_ == Phase::kEnding) return nodes_[index].channel->finish();
      return lose_node(index, CauseKind::kSupervisorEnded,
                       Error(ErrorCode::kUnavailable,
                             fmt::format("the supervisor on {} was ended", node_name(static_cast<int>(index))),
                             "who sent it a signal? Its ranks have ended with it"));
    case MessageType::kOutput: {
      OutputPiece piece = read_output(message);
      find_rank(index, piece.rank);
      return deliveries_.push(
          {.kind = Delivery::Kind::kOutput, .node = static_cast<int>(index), .piece = std::move(piece)});
    }
    case MessageType::kNodeState:
      if (!spec_.on_node_state) return;
      return deliveries_.push({.kind = Delivery::Kind::kNodeState,
                               .node = static_cast<int>(index),
                               .state = read_payload<NodeState>(message)});
    default:
      return take_from_rank(index, message);
  }
}

void JobLoop::take_from_rank(std::size_t index, const Message& message) {
  const Instant now = real_clock().now();
  if (message.type == MessageType::kStarted) {
    const int number = read_payload<RankStarted>(message).rank;
    *find_rank(index, number) = {.node = static_cast<int>(index), .started = true};
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.started; })) {
      notice({JobEvent::Kind::kRanksStarted, "all ranks have started"});
    }
  } else if (message.type == MessageType::kEnded) {
    const auto ended = read_payload<RankEnded>(message);
    Rank* rank = find_rank(index, ended.rank);
    if (rank->restarting) return;
    rank->ended = ended;
    diagnosis_->rank_ended(ended, now);
  } else if (message.type == MessageType::kClosed) {
    const int number = read_payload<RankNote>(message).rank;
    find_rank(index, number)->closed = true;
    deliveries_.push({.kind = Delivery::Kind::kRankClosed, .node = static_cast<int>(index), .piece = {.rank = number}});
  } else if (message.type == MessageType::kStopped) {
    const int number = read_payload<RankNote>(message).rank;
    find_rank(index, number)->stopped = true;
    diagnosis_->rank_stopped(number, now);
  } else if (message.type == MessageType::kJoin) {
    const auto join = read_payload<Join>(message);
    find_rank(index, join.rank);
    take_join(join);
  } else if (message.type == MessageType::kPath) {
    const auto report = read_payload<PathReport>(message);
    find_rank(index, report.rank);
    if (report.epoch >= reports_from_) diagnosis_->path_changed(report, now);
  } else if (message.type == MessageType::kReady) {
    const int number = read_payload<RankNote>(message).rank;
    find_rank(index, number);
    notice({JobEvent::Kind::kReady, fmt::format("rank {} is ready", number), number});
  }
}

// ---- starting

void JobLoop::greet(std::size_t index, const Hello& hello) {
  Node& node = nodes_[index];
  const std::string& name = node_name(static_cast<int>(index));
  const Hello ours = own_hello();
  const int ranks = spec_.nodes[index].ranks;
  if (hello.protocol != ours.protocol || hello.version != ours.version || hello.commit != ours.commit) {
    return lose_node(index, CauseKind::kSupervisorEnded,
                     Error(ErrorCode::kConflict,
                           fmt::format("{} runs yoke {} ({}), this is {} ({})", name, printable(hello.version, 40),
                                       printable(hello.commit, 40), ours.version, ours.commit),
                           "the program is carried there by its content: is another in its place in ~/.cache/yoke?"));
  }
  if (!spec_.oversubscribe && hello.cores > 0 && ranks > kRanksPerCore * hello.cores) {
    return lose_node(index, CauseKind::kNotStarted,
                     Error(ErrorCode::kUsage,
                           fmt::format("{} ranks on {}: at most {} ({} for each of its {} cores)", ranks, name,
                                       kRanksPerCore * hello.cores, kRanksPerCore, hello.cores),
                           spec_.oversubscribe_option.empty()
                               ? "ask for fewer"
                               : fmt::format("ask for fewer; {} allows more", spec_.oversubscribe_option)));
  }
  node.hello = hello;
  node.channel->send(to_message(MessageType::kHello, ours));
  if (phase_ == Phase::kRunning) send_start(index);  // opened again
}

void JobLoop::send_start(std::size_t index) {
  std::vector<std::string> interfaces;
  for (const spec::Rail& rail : spec_.nodes[index].node.rails) interfaces.push_back(rail.interface);
  nodes_[index].channel->send(to_message(
      MessageType::kStart, StartRanks{.node = node_name(static_cast<int>(index)),
                                      .argv = spec_.nodes[index].argv.empty() ? spec_.argv : spec_.nodes[index].argv,
                                      .own_program = spec_.own_program,
                                      .folder = spec_.folder.value_or(std::filesystem::current_path()),
                                      .folder_required = spec_.folder.has_value(),
                                      .grace = spec_.grace,
                                      .reports_state = static_cast<bool>(spec_.on_node_state),
                                      .interfaces = std::move(interfaces),
                                      .ranks = rank_starts(spec_, index, nodes_[index].first_rank,
                                                           static_cast<int>(ranks_.size()), master_)}));
}

// Nothing is started before every node has answered.
void JobLoop::begin_running() {
  for (const Node& node : nodes_) {
    if (!node.hello && !node.refusal) return;
  }
  const bool refused = std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.refusal; });
  if (refused) {
    const Error error = refusals();
    return begin_end(JobCause{.kind = CauseKind::kNotStarted, .exit_status = error.exit_status(), .error = error});
  }
  phase_ = Phase::kRunning;
  for (std::size_t i = 0; i < nodes_.size(); ++i) send_start(i);
}

Error JobLoop::refusals() const {
  std::vector<std::string> messages;
  std::optional<Error> first;
  for (const Node& node : nodes_) {
    if (!node.refusal) continue;
    if (!first) first = node.refusal;
    messages.push_back(node.refusal->message());
  }
  if (messages.size() == 1) return *first;
  return Error(
      first->code(),
      fmt::format("{} of {} nodes cannot be used: {}", messages.size(), nodes_.size(), fmt::join(messages, "; ")),
      first->hint());
}

void JobLoop::notice(JobEvent event) { deliveries_.push({.kind = Delivery::Kind::kEvent, .event = std::move(event)}); }

}  // namespace yoke::job
