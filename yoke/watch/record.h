// A watch on disk: text lines, each with a checksum and a number, so that a record that was cut off or damaged gives
// all that is whole. A sample is written as its difference from the one before; every 30th is whole. The file never
// grows beyond its limit: it then continues behind its first line, over the oldest samples. Each line is written at
// once, so a process that is killed loses nothing that it had taken.
//
//   RecordWriter writer(open_record("night.watch"), plan, 64_MiB);
//   writer.add(observation);                                          // record_reader.h reads it again
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/files.h"
#include "yoke/base/units.h"
#include "yoke/watch/observation.h"

namespace yoke::watch {

// ---- differences of documents. A key that is null has gone; of lists of one length, a map by position.
Document difference(const Document& before, const Document& after);
// Throws Error(kInvalid) for a difference that is not of this document.
void apply_difference(Document& document, const Document& difference);

// ---- lines
std::string record_line(std::uint64_t number, const Document& content);  // with its end
struct RecordLine {
  std::uint64_t number = 0;
  Document content;
};
std::optional<RecordLine> read_record_line(std::string_view line);  // nothing where it is damaged
// Its number, where the checksum is right; the content is not looked at.
std::optional<std::uint64_t> record_line_number(std::string_view line);
inline constexpr std::size_t kMaxRecordLine = 8 << 20;

// Observations as lines, for a file or a pipe.
class RecordEncoder {
 public:
  explicit RecordEncoder(const WatchPlan& plan);
  const std::string& header() const { return header_; }
  std::string encode(const Observation& observation);
  void begin_again();                               // the next sample of each node is whole
  std::vector<Observation> known_machines() const;  // to be told again where older lines are lost

 private:
  struct LastSample {
    Document sample;
    int since_whole = 0;
    bool is_known = false;
    std::optional<spec::Machine> machine;
  };
  std::string header_;
  std::uint64_t number_ = 0;
  std::vector<LastSample> nodes_;
};

class RecordDecoder {
 public:
  // Takes a line; an observation where it holds one. Damaged lines are counted.
  std::optional<Observation> take(std::string_view line);
  std::optional<Observation> take(const RecordLine& line);
  const std::optional<WatchPlan>& plan() const { return plan_; }
  std::size_t damaged() const { return damaged_; }
  void count_damaged(std::size_t lines) { damaged_ += lines; }

 private:
  struct LastSample {
    Document sample;
    bool is_known = false;
  };
  std::optional<WatchPlan> plan_;
  std::vector<LastSample> nodes_;
  std::size_t damaged_ = 0;
  std::uint64_t last_number_ = 0;
};

// ---- a file
class RecordWriter {
 public:
  RecordWriter(const std::filesystem::path& file, const WatchPlan& plan, Bytes limit);
  void add(const Observation& observation);
  Bytes size() const { return Bytes{largest_}; }

 private:
  void write(const std::string& text);

  std::filesystem::path name_;
  UniqueFd file_;
  RecordEncoder encoder_;
  std::int64_t limit_, begin_ = 0, at_ = 0, largest_ = 0;
};
inline constexpr std::int64_t kMinRecordBytes = 1 << 20;

}  // namespace yoke::watch
