#include "yoke/link/journal.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/link/netplan.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {
namespace fs = std::filesystem;

struct JournalFile {
  int version = 1;
  std::vector<std::string> made_folders;
  std::vector<JournalRecord> records;
};

template <class Visitor>
void visit_fields(Visitor& visit, JournalRecord& record) {
  visit.required("step", record.step);
  visit.required("time", record.time);
  visit.required("before", record.before);
  visit.required("after", record.after);
}

template <class Visitor>
void visit_fields(Visitor& visit, JournalFile& file) {
  visit.required("version", file.version);
  visit.optional("made_folders", file.made_folders);
  visit.optional("records", file.records);
}

namespace {

using namespace literals;

constexpr int kVersion = 1;
constexpr Seconds kLockLimit{15};
constexpr const char* kJournalName = "journal.json";

JournalFile read_journal(const fs::path& file) {
  try {
    return from_json<JournalFile>(parse_json(read_file(file), file.native()));
  } catch (const Error& error) {
    if (!error.hint().empty()) throw;
    throw Error(error.code(), error.message(),
                fmt::format("what setup did is not known without it: mend it, or move it away and undo by hand ({} "
                            "holds the files as they were)",
                            (file.parent_path() / "saved").native()));
  }
}

// Of a journal that was never written, as its process was killed before. They are ours by their names, and go only
// where they are empty.
std::vector<std::string> own_folders(const fs::path& folder) {
  std::vector<std::string> folders;
  if (folder.parent_path().filename() == "yoke") folders.push_back(folder.parent_path());
  folders.push_back(folder);
  return folders;
}

// Who can write the journal decides what undo does with our rights.
void require_own(const fs::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0) throw system_error(errno, fmt::format("cannot look at {}", file.native()));
  if (S_ISREG(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  throw Error(ErrorCode::kPermission, fmt::format("{} is not a file that only this user can write", file.native()),
              "find out who changed it; undo would do what is written there");
}

}  // namespace

Journal::Journal(fs::path folder) : folder_(std::move(folder)), saved_(folder_ / "saved") {
  // A step under way when its head was killed comes to its end first. The one that has the lock may remove the folder
  // with its last record.
  lock_.emplace(folder_, FileLockOptions{.wait = kLockLimit,
                                         .busy = "another 'yoke link' is changing this node",
                                         .hint = "wait for it, or end it",
                                         .prepare = [&] { make_own_folder(); }});
  remove_abandoned_scratch();
  remove_unwritten();
  const fs::path file = folder_ / kJournalName;
  if (!fs::exists(file)) {
    const std::vector<std::string> own = own_folders(folder_);
    if (own.size() > made_folders_.size()) made_folders_ = own;
    return;
  }
  require_own(file);
  const JournalFile read = read_journal(file);
  if (read.version != kVersion) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{} was written by another version of yoke", file.native()),
                "undo with the version that did the setup");
  }
  made_folders_ = read.made_folders;
  records_ = read.records;
}

Journal::~Journal() { remove_if_empty(); }

// A folder that is lost in a power cut takes the record of what was changed with it.
void Journal::make_own_folder() {
  made_folders_ = inspect_file(folder_ / kJournalName).missing_folders;
  make_folder(folder_.parent_path());
  make_private_folder(folder_);
  for (const std::string& made : made_folders_) sync_folder(fs::path(made).parent_path());
}

// What a save() that was killed left: see write_file_atomically(). We have the lock, so none is under way.
void Journal::remove_unwritten() const {
  for (const fs::path& folder : {folder_, folder_ / "saved"}) {
    std::error_code failure;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
      const std::string name = entry->path().filename().native();
      const bool is_unwritten =
          folder == folder_ ? name.starts_with(std::string(kJournalName) + ".") : name.find('.') != std::string::npos;
      std::error_code ignored;
      if (is_unwritten) fs::remove(entry->path(), ignored);
    }
  }
}

void Journal::save() const {
  const JournalFile file{.version = kVersion, .made_folders = made_folders_, .records = records_};
  write_file_atomically(folder_ / kJournalName, print_json(to_document(file)), {.mode = 0600, .sync_folder = true});
}

bool Journal::perform(const Step& step) {
  const auto action = make_step_action(step);
  if (action->satisfied()) return false;
  records_.push_back({step, utc_now(), action->capture(saved_), Document::null()});
  save();
  action->apply();
  if (!action->satisfied()) {
    throw Error(ErrorCode::kUnavailable, fmt::format("it was done, but does not hold: {}", step.description),
                "something else on the node changes it back: look at NetworkManager and at other netplan files");
  }
  records_.back().after = action->capture(saved_);
  save();
  return true;
}

void Journal::undo(std::size_t mark, UndoForce force) {
  std::vector<JournalRecord> undone;
  std::optional<Error> conflict;
  for (std::size_t place = records_.size(); place-- > mark;) {
    const JournalRecord record = records_[place];
    const auto action = make_step_action(record.step);
    // Lines are distinguished from others' lines without force too: it must not take more of a file that is the user's.
    const bool by_force = force == UndoForce::kOverwrite && record.step.kind != StepKind::kLines;
    try {
      action->restore(record.before, by_force ? action->capture(saved_) : record.after, saved_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kConflict) throw;
      if (!conflict) conflict = error;
      continue;
    }
    undone.push_back(record);
    records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(place));
    save();
  }
  settle_network(undone);
  remove_if_empty();
  if (conflict) throw *conflict;
}

// netplan is told that its file is gone; what it then does to the interfaces is put right.
void Journal::settle_network(const std::vector<JournalRecord>& undone) const {
  const bool was_netplan = std::any_of(
      undone.begin(), undone.end(), [](const JournalRecord& record) { return record.step.kind == StepKind::kNetplan; });
  if (!was_netplan || !fs::exists("/run/systemd/system")) return;
  run_or_throw({.argv = {"netplan", "apply"}, .timeout = 120_s});
  for (const JournalRecord& record : undone) {
    if (record.step.kind == StepKind::kInterface) make_step_action(record.step)->restore(record.before, {}, saved_);
  }
}

void Journal::remove_if_empty() noexcept {
  if (!records_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_ / "saved", ignored);
  fs::remove(folder_ / kJournalName, ignored);
  remove_made_folders(made_folders_);
}

}  // namespace yoke::link
