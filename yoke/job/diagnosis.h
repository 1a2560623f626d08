// What went wrong first: pure, from the evidence that comes in, with the time given. One death makes many noises: ranks
// that lose a peer exit too, and often their messages overtake that of the death. So evidence that may be a consequence
// waits a moment for a better one, and longer while a node has not been heard of.
//
//   Diagnosis diagnosis({{"spark-1", 2}, {"spark-2", 2}}, {0, 1});     // nodes with their number of rails; rank →
//   node diagnosis.rank_ended(ended, now); if (const auto cause = diagnosis.verdict(now)) …
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/job/job.h"

namespace yoke::job {

struct DiagnosedRail {
  std::string interface, network;  // rails in one network are joined
};
struct DiagnosedNode {
  std::string name;
  int rails = 0;
  std::vector<DiagnosedRail> places = {};  // as many as rails, or none where they are not known
};

class Diagnosis {
 public:
  Diagnosis(std::vector<DiagnosedNode> nodes, std::vector<int> node_of_rank);

  void node_heard(int node, Instant now);
  void node_lost(int node, CauseKind kind, const Error& error, Instant now);
  void rank_ended(const RankEnded& ended, Instant now);
  void rank_stopped(int rank, Instant now);
  void path_changed(const PathReport& report, Instant now);
  void group_left(const Join& join, Instant now);  // a rank asks for the next membership, and nobody told it to

  // The first cause, once it is sure; nothing before, and nothing where all is well.
  std::optional<JobCause> verdict(Instant now) const;
  bool has_evidence() const { return !evidence_.empty(); }
  // What is worth saying while the job goes on, each once.
  std::vector<std::string> take_notices(Instant now);

  // After a verdict that the job survives: a new epoch begins.
  void reset();

 private:
  // Lower is better evidence. kCertain decides at once.
  enum class Weight { kCertain, kCut, kExit, kExitAfterLoss, kLeft };
  struct Evidence {
    Weight weight;
    Instant at;
    JobCause cause;
  };
  using RailKey = std::tuple<int, int, std::string>;  // two nodes in order, and the rail

  const std::string& name_of_rank(int rank) const;
  bool is_rank(int rank) const { return rank >= 0 && rank < static_cast<int>(node_of_rank_.size()); }
  void add(Weight weight, Instant now, JobCause cause);
  bool all_live_after(Instant evidence) const;
  void add_cut(int a, int b, const PathReport& report, Instant now);
  std::vector<std::string> rails_left(int a, int b) const;

  // A cable's rail between two nodes, by its place at each end. In a ring the ends have different letters, and several
  // paths (one for each rail of a node) share it.
  struct Wire {
    std::size_t at_a = 0, at_b = 0;
    friend bool operator==(const Wire&, const Wire&) = default;
  };
  std::vector<Wire> wires(int a, int b) const;
  std::optional<Wire> wire_of(const RailKey& path) const;
  std::vector<RailKey> paths_beside(const RailKey& path) const;  // all that use the same wire, this one too
  std::string name_of(const RailKey& path) const;
  void notice_cut(const RailKey& path);

  std::vector<DiagnosedNode> nodes_;
  std::vector<int> node_of_rank_;
  std::vector<std::optional<Instant>> heard_;
  std::vector<Evidence> evidence_;
  std::set<int> lost_a_peer_;              // ranks that told so
  std::map<RailKey, Instant> lost_rails_;  // since when
  std::set<RailKey> reported_rails_;
  std::vector<std::string> notices_;
};

}  // namespace yoke::job
