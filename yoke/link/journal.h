// What setup has changed on this node, in order, so that it can be taken back exactly: after a crash or a reboot too.
// A record is on disk, with the state before, before its step is begun; so whatever moment a crash chooses, undo finds
// what to restore. One process at a time holds a journal.
//
//   Journal journal(kJournalFolder);      // waits for another holder to end
//   journal.perform(step);                // record, do, verify
//   journal.undo(0);                      // back to before the first record
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/file_lock.h"
#include "yoke/link/file_state.h"
#include "yoke/link/step.h"

namespace yoke::link {

inline constexpr const char* kJournalFolder = "/var/lib/yoke/link";

struct JournalRecord {
  Step step;
  std::string time;
  Document before;
  Document after;  // null: its step was begun, and perhaps cut short
};

enum class UndoForce {
  kNone,       // what somebody else changed since is an Error
  kOverwrite,  // it is replaced by what was there before us
};

class Journal {
 public:
  explicit Journal(std::filesystem::path folder);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::vector<JournalRecord>& records() const { return records_; }

  // False where all was as the step wants it, and nothing is written. A step that does not verify stays recorded.
  bool perform(const Step& step);
  // The newest first, until `mark` records are left; each goes from the journal once it is undone. With the last the
  // journal itself goes.
  void undo(std::size_t mark, UndoForce force = UndoForce::kNone);

 private:
  void make_own_folder();
  void remove_unwritten() const;
  void save() const;
  void remove_if_empty() noexcept;
  void settle_network(const std::vector<JournalRecord>& undone) const;

  std::filesystem::path folder_;
  std::vector<std::string> made_folders_;  // by us, outermost first
  std::optional<FileLock> lock_;
  SavedBytes saved_;
  std::vector<JournalRecord> records_;
};

}  // namespace yoke::link
