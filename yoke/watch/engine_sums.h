// What was seen of an engine that was watched for a while, summed up for its judge (why/evaluate_engine.h).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/watch/board.h"
#include "yoke/why/evaluate_engine.h"

namespace yoke::watch {

// Sums of all samples of a watch.
class EngineSums {
 public:
  void take(const Board& board, std::size_t place);

  bool has_engine() const { return engine_.has_value(); }
  why::EngineQuestion question() const;  // needs an engine

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    void add(double value) {
      sum += value;
      ++count;
    }
    void add(const std::optional<double>& value) {
      if (value) add(*value);
    }
    void add(const std::optional<std::int64_t>& value) {
      if (value) add(static_cast<double>(*value));
    }
    std::optional<double> value() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
  };

  struct RailMeans {
    Mean bytes;
    double errors = 0, retransmits = 0, discards = 0;
    bool is_up = true;
    std::string rail;
  };
  struct GpuMeans {
    Mean busy, held;
    std::vector<std::string> limits;
  };

  void take_rails(const BoardNode& node);
  void take_gpus(const BoardNode& node);
  void take_engine(const BoardNode& node);

  double first_ = 0, last_ = 0;
  std::optional<EngineSample> engine_;
  std::string engine_node_;
  Mean running_, waiting_, cache_, prompts_, made_;
  Total preempted_first_, preempted_last_;
  std::map<std::string, Mean> cpu_, memory_;
  std::map<std::pair<std::string, std::string>, RailMeans> rails_;
  std::map<std::pair<std::string, int>, GpuMeans> gpus_;
};

}  // namespace yoke::watch
