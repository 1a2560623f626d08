// Which jobs of this user run from this machine: a small file each in the user's runtime folder, written by the head of
// the job and removed with it. A head that was killed leaves its file; whoever lists removes it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/units.h"

namespace yoke {

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

// SIGTERM to the head, which ends all ranks; SIGKILL at the deadline, and then the supervisors end them by themselves.
// Returns once the head is gone.
void stop_running_job(const JobRecord& record, Seconds limit);

}  // namespace yoke
