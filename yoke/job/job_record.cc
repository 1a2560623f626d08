#include "yoke/job/job_record.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/file_lock.h"
#include "yoke/base/files.h"
#include "yoke/base/held_process.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"

namespace yoke::job {
namespace fs = std::filesystem;
using namespace literals;

}  // namespace yoke::job
namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, ProcessId& process) {
  visit.required("pid", process.pid);
  visit.required("started", process.started);
}

}  // namespace yoke
namespace yoke::job {

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

fs::path private_folder(const char* name) {
  fs::path folder = user_runtime_dir() / name;
  make_private_folder(folder);
  return folder;
}

fs::path jobs_folder() { return private_folder("jobs"); }
fs::path commands_folder() { return private_folder("commands"); }

bool is_alive(const ProcessId& process) { return living_process(process.pid) == process; }

Result<JobRecord> read_record(const fs::path& file) {
  return try_to([&] { return from_json<JobRecord>(parse_json(read_file(file), file.native())); });
}

// Between looking for a name and taking it nobody else does.
FileLock lock_jobs() {
  return {jobs_folder() / "lock",
          {.busy = "another job is just being started, and comes to no end", .hint = "try again, or end it"}};
}

}  // namespace

Document to_json(const JobRecord& record) { return write_fields(record); }

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

namespace {

// Those whose process lives; the files of others are removed.
std::vector<JobRecord> living_records(const fs::path& folder) {
  std::vector<JobRecord> jobs;
  for (const auto& entry : fs::directory_iterator(folder)) {
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

}  // namespace

std::vector<JobRecord> running_jobs() { return living_records(jobs_folder()); }

CommandMark::CommandMark(const std::string& command) {
  const auto written = try_to([&] {
    const auto self = living_process(getpid());
    if (!self) return;
    const fs::path path = commands_folder() / fmt::format("{}.json", self->pid);
    const JobRecord record{.name = command, .head = *self, .since = utc_now(), .nodes = {}, .ranks = 0, .command = ""};
    write_file_atomically(path, print_json(to_json(record)), {.mode = 0600});
    path_ = path;
  });
  if (!written) log(LogLevel::kDebug, "'{}' leaves no mark: {}", command, written.error().message());
}

CommandMark::~CommandMark() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

std::vector<JobRecord> running_commands() {
  std::vector<JobRecord> commands = living_records(commands_folder());
  const std::vector<JobRecord> jobs = running_jobs();
  std::erase_if(commands, [&](const JobRecord& command) {
    return std::any_of(jobs.begin(), jobs.end(), [&](const JobRecord& job) { return job.head == command.head; });
  });
  return commands;
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

}  // namespace yoke::job
