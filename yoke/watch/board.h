// What is known of all nodes at this moment, and of the last hour: the one state behind the table, the screen, the page
// and the metrics. Observations go in, findings begin and end.
//
//   Board board(plan);
//   for (const FindingChange& change : board.take(observation)) …
//
// One thread at a time.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/spec/survey.h"
#include "yoke/watch/finding_tracker.h"
#include "yoke/watch/node_past.h"
#include "yoke/watch/observation.h"
#include "yoke/watch/rates.h"

namespace yoke::watch {

// Values over time, by name: "cpu" (%), "memory" (available bytes), "rail/NAME/in" and "/out" (bit/s), "gpu/0/busy"
// (%), "gpu/0/clock" (MHz), "gpu/0/power" (W), "gpu/0/temperature" (C), "gpu/0/nvlink/in" and "/out" (bytes/s),
// "tokens" (per second). Not given: NaN.
class History {
 public:
  static constexpr std::size_t kHour = 3600;  // rows, at one a second
  explicit History(std::size_t rows_max = kHour) : rows_max_(rows_max) {}
  void add(double time, const std::map<std::string, double>& values);
  const std::deque<double>& times() const { return times_; }
  const std::map<std::string, std::deque<float>>& series() const { return series_; }
  // The last `count` values, oldest first; fewer where there are not so many.
  std::vector<double> last(const std::string& name, std::size_t count) const;

 private:
  std::size_t rows_max_;
  std::deque<double> times_;
  std::map<std::string, std::deque<float>> series_;
};

// A rail of the cluster, or another wired interface, with what it does now.
struct BoardRail {
  std::string interface;
  std::string title;       // "A", "B", with more than one port "0A"; empty: no rail
  bool is_listed = false;  // the cluster file names it
  RailSample sample;
  RailRates rates;
  std::optional<BitsPerSecond> in, out;  // by the interface or by RDMA, whichever carries more
};

struct BoardNode {
  std::string name;
  std::optional<double> heard = {};  // when the last sample came
  bool silent = false;
  std::optional<NodeProblem> problem = {};
  std::optional<spec::Machine> machine = {};
  std::optional<Sample> before = {}, sample = {};
  Rates rates = {};
  std::vector<BoardRail> rails = {};             // listed ones first
  std::optional<double> tokens_per_second = {};  // of all engines
  double idle_seconds = 0, watched_seconds = 0;  // GPUs idle, or without any the CPU
  History history = History();
  NodePast past = {};
};

// A job of yoke that began or ended while it was watched.
struct BoardMark {
  double time = 0;
  std::string text;
};

class Board {
 public:
  explicit Board(WatchPlan plan, std::size_t history_rows = History::kHour);

  std::vector<FindingChange> take(const Observation& observation);
  // Time passes: who has been silent for too long?
  std::vector<FindingChange> tick(double now);

  const WatchPlan& plan() const { return plan_; }
  const std::vector<BoardNode>& nodes() const { return nodes_; }
  const FindingTracker& findings() const { return findings_; }
  const std::vector<BoardMark>& marks() const { return marks_; }
  double now() const { return now_; }
  // How far a node's clock is ahead of the first node's; nothing for that one, and before there are some samples.
  std::optional<Seconds> clock_ahead(const BoardNode& node) const;
  // The history that is the evidence of a finding; nothing where none shows it.
  std::optional<std::string> series_of(const spec::Finding& finding) const;

 private:
  std::vector<FindingChange> evaluate();
  void take_sample(BoardNode& node, double time, const Sample& sample);
  void note_jobs(const BoardNode& node);

  WatchPlan plan_;
  std::vector<BoardNode> nodes_;
  FindingTracker findings_;
  std::vector<BoardMark> marks_;
  double now_ = 0, evaluated_ = 0;
};

// After so long without a sample a node counts as silent.
Seconds silence_limit(Seconds interval);

// The present facts of all nodes for the rules of check: those read at the start, with what samples have changed.
spec::Survey survey_of(const Board& board);

}  // namespace yoke::watch
