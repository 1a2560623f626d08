// A record read from its beginning to its end, once: only the places of its lines are in memory, so that a record of
// any size can be shown again. A file that came round has its newest lines before its oldest; they are read in the
// order of their numbers.
//
//   RecordReader record("night.watch");
//   while (const auto observation = record.next()) board.take(*observation);
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/watch/observation.h"
#include "yoke/watch/record.h"

namespace yoke::watch {

class RecordReader {
 public:
  // Both throw Error(kInvalid) where it is no record at all.
  explicit RecordReader(const std::filesystem::path& file);
  RecordReader(std::string text, const std::string& name);

  const WatchPlan& plan() const { return plan_; }
  std::optional<Observation> next();  // by time; nothing at the end
  // Lines that were left out: those with a wrong checksum from the beginning, others once they were come to.
  std::size_t damaged() const { return decoder_.damaged(); }

 private:
  struct Line {
    std::uint64_t number, offset;
    std::size_t size;
  };
  using ReadAt = std::function<std::size_t(std::uint64_t offset, char* to, std::size_t size)>;

  void open(const std::string& name);
  void find_lines();
  void add_line(std::uint64_t offset, std::string_view line);
  std::optional<Observation> take_line();

  ReadAt read_at_;
  std::vector<Line> lines_;
  std::size_t at_ = 0;
  RecordDecoder decoder_;
  WatchPlan plan_;
};

// A record played again: as fast as it was, or so many times faster; 0: at once.
class RecordSource final : public ObservationSource {
 public:
  RecordSource(RecordReader record, double speed);
  std::optional<Observation> next(Deadline deadline) override;
  bool at_end() const override { return !ahead_; }
  double now() const override;

 private:
  RecordReader record_;
  double speed_;
  std::optional<Observation> ahead_;  // the next one
  bool is_begun_ = false;
  double time_;  // of the last one that was given, or the first
  double began_at_;
  Instant began_;
};

}  // namespace yoke::watch
