// Which jobs of this user run from this machine: a small file each in the user's runtime folder, written by the head of
// the job and removed with it. A head that was killed leaves its file; the one that lists removes it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/units.h"

namespace yoke::job {

struct JobRecord {
  std::string name;
  ProcessId head;     // the process that runs it
  std::string since;  // utc_now() at its start
  std::vector<std::string> nodes;
  int ranks = 0;
  std::string command;  // as one would type it
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};
Document to_json(const JobRecord& record);

// Holds the record of a running job. A name that another running job has is Error(kConflict).
class JobRecordFile {
 public:
  explicit JobRecordFile(const JobRecord& record);
  JobRecordFile(const JobRecordFile&) = delete;
  JobRecordFile& operator=(const JobRecordFile&) = delete;
  ~JobRecordFile();

 private:
  std::filesystem::path path_;
  ProcessId head_;
};

std::vector<JobRecord> running_jobs();  // by name

// Holds a mark that a command of this user runs here, for `yoke watch`: also of one that starts no job. Where it cannot
// be written there is none.
class CommandMark {
 public:
  explicit CommandMark(const std::string& command);  // "yoke bench memory": its words, and none that a user typed
  CommandMark(const CommandMark&) = delete;
  CommandMark& operator=(const CommandMark&) = delete;
  ~CommandMark();

 private:
  std::filesystem::path path_;  // empty: none
};

// As records without nodes and ranks. Not those whose job is in running_jobs().
std::vector<JobRecord> running_commands();

// SIGTERM to the head, which ends all ranks; SIGKILL at the deadline, and then the supervisors end them by themselves.
// Returns once the head is gone.
void stop_running_job(const JobRecord& record, Seconds limit);

}  // namespace yoke::job
