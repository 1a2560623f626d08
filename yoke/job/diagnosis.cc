#include "yoke/job/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "yoke/job/node_answer.h"

namespace yoke::job {
namespace {

// How long evidence waits for a better one: a message over ssh on a loaded machine.
constexpr Seconds kSettleTime{0.35};
// A node whose ranks and supervisor died together is not told from a cut until its heartbeats stay away: what is heard
// this soon after the evidence may have been sent before it.
constexpr Seconds kTravelTime{0.1};
// But nobody waits longer than this: a channel is found lost after 2 s of silence, and a question of 1 s.
constexpr Seconds kPatience{4};

// Signals that the kernel or a person sends to end a process, rather than those by which it ends itself because another
// is gone (abort(), a closed pipe) or was asked to.
bool is_certain(int signal_number) {
  return signal_number != SIGABRT && signal_number != SIGPIPE && signal_number != SIGTERM && signal_number != SIGHUP;
}

std::string signal_text(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  return fmt::format("signal {}{}", signal_number, name ? fmt::format(" (SIG{})", name) : "");
}

bool after(Instant now, Instant since, Seconds time) { return to_seconds(now - since) >= time; }

}  // namespace

std::string_view to_string(CauseKind kind) {
  for (const auto& [name, value] : enum_names(kind)) {
    if (value == kind) return name;
  }
  return "?";
}

Diagnosis::Diagnosis(std::vector<DiagnosedNode> nodes, std::vector<int> node_of_rank)
    : nodes_(std::move(nodes)), node_of_rank_(std::move(node_of_rank)), heard_(nodes_.size()) {}

const std::string& Diagnosis::name_of_rank(int rank) const {
  return nodes_[static_cast<std::size_t>(node_of_rank_[static_cast<std::size_t>(rank)])].name;
}

void Diagnosis::add(Weight weight, Instant now, JobCause cause) {
  evidence_.push_back({weight, now, std::move(cause)});
}

void Diagnosis::node_heard(int node, Instant now) { heard_[static_cast<std::size_t>(node)] = now; }

void Diagnosis::node_lost(int node, CauseKind kind, const Error& error, Instant now) {
  heard_[static_cast<std::size_t>(node)].reset();  // it is not waited for
  add(Weight::kCertain, now,
      {.kind = kind,
       .node = nodes_[static_cast<std::size_t>(node)].name,
       .exit_status = error.exit_status(),
       .error = error});
}

void Diagnosis::rank_ended(const RankEnded& ended, Instant now) {
  if (!is_rank(ended.rank) || ended.ended_by_us || ended.exit_status == 0) return;
  const std::string& node = name_of_rank(ended.rank);
  JobCause cause{.kind = CauseKind::kRankExited,
                 .node = node,
                 .rank = ended.rank,
                 .exit_status = ended.exit_status,
                 .error = Error(ErrorCode::kUnavailable, fmt::format("rank {} on {} exited with status {}", ended.rank,
                                                                     node, ended.exit_status))};
  if (ended.out_of_memory) {
    cause.kind = CauseKind::kOutOfMemory;
    cause.error = Error(ErrorCode::kExhausted,
                        fmt::format("rank {} on {} was killed by the kernel: out of memory", ended.rank, node),
                        "give it less to do, or the node more memory");
  } else if (ended.signal) {
    cause.kind = CauseKind::kRankKilled;
    cause.error = Error(ErrorCode::kUnavailable,
                        fmt::format("rank {} on {} was killed by {}", ended.rank, node, signal_text(*ended.signal)));
  }
  Weight weight = lost_a_peer_.contains(ended.rank) ? Weight::kExitAfterLoss : Weight::kExit;
  if (ended.out_of_memory || (ended.signal && is_certain(*ended.signal))) weight = Weight::kCertain;
  add(weight, now, std::move(cause));
}

void Diagnosis::rank_stopped(int rank, Instant now) {
  if (!is_rank(rank)) return;
  const std::string& node = name_of_rank(rank);
  const Error error(ErrorCode::kUnavailable, fmt::format("rank {} on {} is stopped (SIGSTOP)", rank, node),
                    "who stopped it? A debugger, or a shell's job control");
  add(Weight::kCertain, now,
      {.kind = CauseKind::kRankStopped,
       .node = node,
       .rank = rank,
       .exit_status = error.exit_status(),
       .error = error});
}

void Diagnosis::path_changed(const PathReport& report, Instant now) {
  if (!is_rank(report.rank) || !is_rank(report.peer)) return;
  int a = node_of_rank_[static_cast<std::size_t>(report.rank)];
  int b = node_of_rank_[static_cast<std::size_t>(report.peer)];
  if (a > b) std::swap(a, b);
  const RailKey key{a, b, report.rail};
  if (report.state == PathState::kBack) {
    lost_rails_.erase(key);
    const std::vector<RailKey> beside = paths_beside(key);
    const bool last =
        reported_rails_.erase(key) > 0 &&
        std::none_of(beside.begin(), beside.end(), [&](const RailKey& path) { return reported_rails_.contains(path); });
    if (last) notices_.push_back(fmt::format("{} is back", name_of(key)));
    return;
  }
  if (report.rail.empty()) return add_cut(a, b, report, now);
  lost_rails_.emplace(key, now);
  const auto lost = std::count_if(lost_rails_.begin(), lost_rails_.end(), [&](const auto& row) {
    return std::get<0>(row.first) == a && std::get<1>(row.first) == b;
  });
  if (lost >= std::max(1, nodes_[static_cast<std::size_t>(a)].rails)) add_cut(a, b, report, now);
}

void Diagnosis::add_cut(int a, int b, const PathReport& report, Instant now) {
  lost_a_peer_.insert(report.rank);
  const DiagnosedNode& first = nodes_[static_cast<std::size_t>(a)];
  const DiagnosedNode& second = nodes_[static_cast<std::size_t>(b)];
  JobCause cause{.kind = CauseKind::kRailsCut,
                 .node = name_of_rank(report.peer),
                 .rank = report.peer,
                 .error = Error(ErrorCode::kUnavailable, "")};
  const std::string why = report.why.empty() ? "" : fmt::format(" ({})", report.why);
  Weight weight = Weight::kCut;
  if (a == b) {
    weight = Weight::kLeft;
    cause.kind = CauseKind::kGroupLost;
    cause.error = Error(ErrorCode::kUnavailable, fmt::format("rank {} lost rank {} on the same node {}{}", report.rank,
                                                             report.peer, first.name, why));
  } else {
    cause.rail = first.rails > 1 ? "all" : "";
    const std::string_view what = first.rails == 2 ? "both rails" : first.rails > 2 ? "all rails" : "the network";
    cause.error =
        Error(ErrorCode::kUnavailable,
              fmt::format("{} between {} and {} {} cut, while both nodes live: rank {} lost rank {}{}", what,
                          first.name, second.name, first.rails >= 2 ? "are" : "is", report.rank, report.peer, why),
              "are the cables plugged in, and does no firewall drop the packets?");
  }
  cause.exit_status = cause.error.exit_status();
  add(weight, now, std::move(cause));
}

void Diagnosis::group_left(const Join& join, Instant now) {
  if (!is_rank(join.rank)) return;
  lost_a_peer_.insert(join.rank);
  const Error error(ErrorCode::kUnavailable,
                    fmt::format("rank {} on {} left its group: {}", join.rank, name_of_rank(join.rank), join.why));
  add(Weight::kLeft, now,
      {.kind = CauseKind::kGroupLost,
       .node = name_of_rank(join.rank),
       .rank = join.rank,
       .exit_status = error.exit_status(),
       .error = error});
}

bool Diagnosis::all_live_after(Instant evidence) const {
  return std::all_of(heard_.begin(), heard_.end(),
                     [&](const auto& heard) { return !heard || after(*heard, evidence, kTravelTime); });
}

std::optional<JobCause> Diagnosis::verdict(Instant now) const {
  if (evidence_.empty()) return std::nullopt;
  const auto best = std::min_element(evidence_.begin(), evidence_.end(),
                                     [](const Evidence& x, const Evidence& y) { return x.weight < y.weight; });
  if (best->weight == Weight::kCertain) return best->cause;
  const Instant first = evidence_.front().at;
  const bool settled = after(now, first, kSettleTime) && all_live_after(first);
  if (!settled && !after(now, first, kPatience)) return std::nullopt;
  return best->cause;
}

std::vector<Diagnosis::Wire> Diagnosis::wires(int a, int b) const {
  const auto& ours = nodes_[static_cast<std::size_t>(a)].places;
  const auto& theirs = nodes_[static_cast<std::size_t>(b)].places;
  std::vector<Wire> found;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    // Both rails may be in one network: then place by place.
    if (i < theirs.size() && theirs[i].network == ours[i].network) {
      found.push_back({i, i});
      continue;
    }
    const auto j =
        std::find_if(theirs.begin(), theirs.end(), [&](const auto& rail) { return rail.network == ours[i].network; });
    if (j != theirs.end()) found.push_back({i, static_cast<std::size_t>(j - theirs.begin())});
  }
  return found;
}

// The path of rail i goes from the i-th rail of one node to the i-th of the other. In a ring those may be at other
// cables: setup's routes lead it over the rail of the same half of the cable between the two.
std::optional<Diagnosis::Wire> Diagnosis::wire_of(const RailKey& path) const {
  const auto& [a, b, rail] = path;
  const std::vector<Wire> found = wires(a, b);
  if (found.empty() || rail.size() != 1 || rail[0] < 'A' || rail[0] > 'Z') return std::nullopt;
  return found[static_cast<std::size_t>(rail[0] - 'A') % found.size()];
}

std::vector<Diagnosis::RailKey> Diagnosis::paths_beside(const RailKey& path) const {
  const auto& [a, b, rail] = path;
  const auto wire = wire_of(path);
  if (!wire) return {path};
  std::vector<RailKey> beside;
  for (int i = 0; i < nodes_[static_cast<std::size_t>(a)].rails; ++i) {
    RailKey other{a, b, rail_name(static_cast<std::size_t>(i))};
    if (wire_of(other) == wire) beside.push_back(std::move(other));
  }
  return beside;
}

// "rail B between spark-1 and spark-2"; where the ends have different letters, "rail B of spark-1 (enP2p1s0f0np0, to
// rail D of spark-2)".
std::string Diagnosis::name_of(const RailKey& path) const {
  const auto& [a, b, rail] = path;
  const DiagnosedNode& first = nodes_[static_cast<std::size_t>(a)];
  const DiagnosedNode& second = nodes_[static_cast<std::size_t>(b)];
  const auto wire = wire_of(path);
  if (!wire || wire->at_a == wire->at_b) return fmt::format("rail {} between {} and {}", rail, first.name, second.name);
  return fmt::format("rail {} of {} ({}, to rail {} of {})", rail_name(wire->at_a), first.name,
                     first.places[wire->at_a].interface, rail_name(wire->at_b), second.name);
}

std::vector<std::string> Diagnosis::rails_left(int a, int b) const {
  std::vector<std::string> left;
  for (int i = 0; i < nodes_[static_cast<std::size_t>(a)].rails; ++i) {
    const RailKey path{a, b, rail_name(static_cast<std::size_t>(i))};
    const auto wire = wire_of(path);
    std::string name = wire ? rail_name(wire->at_a) : std::get<2>(path);
    if (!lost_rails_.contains(path) && std::find(left.begin(), left.end(), name) == left.end())
      left.push_back(std::move(name));
  }
  return left;
}

// One notice for a cable's rail, whatever number of paths used it.
void Diagnosis::notice_cut(const RailKey& path) {
  const std::vector<RailKey> beside = paths_beside(path);
  const bool whole = std::all_of(beside.begin(), beside.end(), [&](const RailKey& other) {
    return lost_rails_.contains(other) && !reported_rails_.contains(other);
  });
  const auto& [a, b, rail] = path;
  const std::string name =
      whole ? name_of(path)
            : fmt::format("the path of rail {} between {} and {}", rail, nodes_[static_cast<std::size_t>(a)].name,
                          nodes_[static_cast<std::size_t>(b)].name);
  if (whole)
    reported_rails_.insert(beside.begin(), beside.end());
  else
    reported_rails_.insert(path);
  const std::vector<std::string> left = rails_left(a, b);
  notices_.push_back(
      fmt::format("{} is cut: going on with {} {}", name, left.size() == 1 ? "rail" : "rails", fmt::join(left, ", ")));
}

std::vector<std::string> Diagnosis::take_notices(Instant now) {
  for (const auto& [key, since] : lost_rails_) {
    // With a graver cause at hand the rail is but a consequence.
    if (evidence_.empty() && after(now, since, kSettleTime) && !reported_rails_.contains(key)) notice_cut(key);
  }
  return std::exchange(notices_, {});
}

void Diagnosis::reset() {
  evidence_.clear();
  lost_a_peer_.clear();
  lost_rails_.clear();  // the new group finds out again; what was reported is not repeated
}

}  // namespace yoke::job
