// A run that crosses from rank 0's process to the one that prints it: a JSON text a line, as the sink gets it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "yoke/bench/measure_collective.h"

namespace yoke::bench {

// Writes what it gets, a line with its end at a time.
class EventWriter final : public CollectiveSink {
 public:
  explicit EventWriter(std::function<void(std::string_view line)> write) : write_(std::move(write)) {}

  void begin(const CollectiveRun& run) override;
  void row(const CollectiveRun& run, const CollectiveRow& row) override;
  void end(const CollectiveRun& run) override;

 private:
  void write_event(std::string name, Document content) const;

  std::function<void(std::string_view)> write_;
};

// Reads it back and tells the sink, if there is one.
class EventReader {
 public:
  explicit EventReader(CollectiveSink* sink) : sink_(sink) {}

  // A piece of the stream; what is no event is an Error(kInvalid).
  void take(std::string_view bytes);
  bool failed() const { return run_.failure.has_value(); }  // rank 0 told what ended it
  // The ranks are gone. Where something ended them, that is the run's failure, and what came before it holds; where
  // nothing had come, it is thrown.
  const CollectiveRun& finish(const std::optional<Error>& cause);

 private:
  void take_line(const std::string& line);

  CollectiveSink* sink_;
  std::string partial_;
  CollectiveRun run_;
  bool began_ = false;
};

}  // namespace yoke::bench
