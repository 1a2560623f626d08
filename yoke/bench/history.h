// Every measurement of this user on this machine, in one SQLite file under the user's data folder. Several programs may
// write at once: each run is one transaction, and who finds the file locked waits. A file that is not ours to read any
// more (cut, overwritten) is set aside under another name and said; nothing is ever deleted.
//
//   History history(history_file());
//   const std::int64_t id = history.add(record);
//   history.recent(10); history.find("last-1");
//
// One thread at a time uses a History; several programs each have theirs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/bench/run_record.h"

struct sqlite3;

namespace yoke::bench {

std::filesystem::path history_file();  // under user_data_dir()

class History {
 public:
  // Opens, makes where missing. Throws Error: a full disk, no rights, a file of a newer yoke.
  explicit History(std::filesystem::path file);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  std::int64_t add(const RunRecord& record);  // the id it got

  std::vector<RunRecord> recent(int limit) const;  // newest first, with their rows
  // By id, or "last", "last-1" …; an Error(kNotFound) that says which there are.
  RunRecord find(const std::string& name) const;

  // Where a broken file was put, in words for the user.
  const std::optional<std::string>& set_aside() const { return set_aside_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  using Database = std::unique_ptr<sqlite3, Close>;

  static Database open_checked(const std::filesystem::path& file);  // throws Error(kInvalid) where it is broken
  void set_aside_broken();
  void load_rows(RunRecord& record) const;

  std::filesystem::path file_;
  Database database_;
  std::optional<std::string> set_aside_;
};

// Adds the record to the history, or says why not as a warning for the user: a result that was measured is never lost
// to a full disk. That a broken file was set aside is a warning too.
struct StoredRun {
  std::optional<std::int64_t> id;
  std::vector<std::string> warnings;
};
StoredRun keep_record(const RunRecord& record, const std::filesystem::path& file);
// The same in the user's history; the warnings. Where this variable names a file (on a lab's node, whose files go with
// the lab) the record is written there instead, for the one that started us to keep.
inline constexpr const char* kRecordHandOver = "YOKE_RECORD_HAND_OVER";
std::vector<std::string> keep_record(const RunRecord& record);

}  // namespace yoke::bench
