#include "yoke/job/job_record.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/file_lock.h"
#include "yoke/base/files.h"
#include "yoke/base/held_process.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"

namespace yoke {
namespace fs = std::filesystem;
using namespace literals;

template <class Visitor>
void visit_fields(Visitor& visit, ProcessId& process) {
  visit.required("pid", process.pid);
  visit.required("started", process.started);
}

template <class Visitor>
void visit_fields(Visitor& visit, JobRecord& record) {
  visit.required("name", record.name);
  visit.required("head", record.head);
  visit.required("since", record.since);
  visit.required("nodes", record.nodes);
  visit.required("ranks", record.ranks);
  visit.required("command", record.command);
}

namespace {

fs::path jobs_folder() {
  fs::path folder = user_runtime_dir() / "jobs";
  make_private_folder(folder);
  return folder;
}

bool is_alive(const ProcessId& process) { return living_process(process.pid) == process; }

Result<JobRecord> read_record(const fs::path& file) {
  return try_to([&] { return from_document<JobRecord>(parse_json(read_file(file), file.native())); });
}

// Between looking for a name and taking it nobody else does.
FileLock lock_jobs() {
  return {jobs_folder() / "lock",
          {.busy = "another job is just being started, and comes to no end", .hint = "try again, or end it"}};
}

}  // namespace

Document to_json(const JobRecord& record) { return to_document(record); }

JobRecordFile::JobRecordFile(const JobRecord& record)
    : path_(jobs_folder() / (record.name + ".json")), head_(record.head) {
  const FileLock lock = lock_jobs();
  if (const auto other = read_record(path_); other && is_alive(other->head)) {
    throw Error(ErrorCode::kConflict, fmt::format("a job '{}' is running already", record.name),
                "give this one another --name, or end that one: yoke job stop " + record.name);
  }
  write_file_atomically(path_, print_json(to_json(record)), {.mode = 0600});
}

JobRecordFile::~JobRecordFile() {
  if (const auto record = read_record(path_); record && record->head != head_) return;
  std::error_code ignored;
  fs::remove(path_, ignored);
}

std::vector<JobRecord> running_jobs() {
  std::vector<JobRecord> jobs;
  for (const auto& entry : fs::directory_iterator(jobs_folder())) {
    if (entry.path().extension() != ".json") continue;
    const auto record = read_record(entry.path());
    if (record && is_alive(record->head)) {
      jobs.push_back(*record);
    } else {
      std::error_code ignored;  // another lister may have been quicker
      fs::remove(entry.path(), ignored);
    }
  }
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return jobs;
}

namespace {

bool wait_for_end(const HeldProcess& process, Deadline deadline) {
  while (!process.wait_until_ended(Deadline::after(std::min(deadline.remaining(), 100_ms)))) {
    throw_if_interrupted();
    if (deadline.expired()) return false;
  }
  return true;
}

}  // namespace

void stop_running_job(const JobRecord& record, Seconds limit) {
  const std::optional<HeldProcess> head = HeldProcess::open(record.head);
  if (!head) return;
  head->send(SIGTERM);
  if (wait_for_end(*head, Deadline::after(limit))) return;
  head->send(SIGKILL);
  if (wait_for_end(*head, Deadline::after(5_s))) return;
  throw Error(ErrorCode::kTimeout, fmt::format("the job '{}' (process {}) does not end", record.name, record.head.pid));
}

}  // namespace yoke
