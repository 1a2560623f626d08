#include "yoke/lab/parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/json.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/lab/holder.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;

namespace {

struct PartRecord {
  pid_t pid = 0;
  unsigned long long started = 0;
  std::string boot;
};

template <class Visitor>
void visit_fields(Visitor& visit, PartRecord& record) {
  visit.required("pid", record.pid);
  visit.required("started", record.started);
  visit.required("boot", record.boot);
}

std::string this_boot() { return DiskTree().read_trimmed("/proc/sys/kernel/random/boot_id").value_or(""); }

constexpr std::string_view kPartPrefix = "part-";

fs::path record_file(const std::string& lab, int number) {
  return lab_folder(lab) / fmt::format("{}{}", kPartPrefix, number);
}

std::optional<PartRecord> read_record(const std::string& lab, int number) {
  const fs::path file = record_file(lab, number);
  const auto text = DiskTree().read(file.native());
  if (!text) return std::nullopt;
  return from_json<PartRecord>(parse_json(*text, file.native()));
}

std::vector<int> recorded_parts(const std::string& lab) {
  std::vector<int> numbers;
  for (const std::string& name : DiskTree().list(lab_folder(lab).native())) {
    int number = 0;
    if (!name.starts_with(kPartPrefix)) continue;
    const auto [rest, failure] = std::from_chars(name.data() + kPartPrefix.size(), name.data() + name.size(), number);
    if (failure == std::errc{} && rest == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// Its real, effective, saved and file system user, as our user namespace numbers them: "Uid:\t0\t0\t0\t0".
bool belongs_to_us(const UniqueFd& folder) {
  const UniqueFd status(openat(folder.get(), "status", O_RDONLY | O_CLOEXEC));
  char buffer[4096];
  if (!status) return false;
  const ssize_t count = read(status.get(), buffer, sizeof buffer);
  if (count <= 0) return false;  // it has just ended
  const std::string ours = fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}", geteuid());
  for (const std::string& line : split(std::string_view(buffer, static_cast<std::size_t>(count)), '\n')) {
    if (line.starts_with("Uid:")) return line == ours;
  }
  return false;
}

bool is_same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

std::optional<LabPart> find_part(const std::string& lab, int number) {
  if (!lab_exists(lab)) return std::nullopt;
  require_own_lab(lab);
  const std::optional<PartRecord> record = read_record(lab, number);
  if (!record || record->boot != this_boot()) return std::nullopt;
  std::optional<HeldProcess> process = HeldProcess::open({record->pid, record->started});
  UniqueFd folder(open(fmt::format("/proc/{}", record->pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process || !folder || !belongs_to_us(folder)) return std::nullopt;
  // Still there: so the number meant this process during all of the above.
  if (process->has_ended()) return std::nullopt;
  return LabPart(std::move(*process), std::move(folder));
}

UniqueFd LabPart::open(const std::string& name, int flags) const {
  UniqueFd fd(openat(folder_.get(), name.c_str(), flags | O_CLOEXEC));
  if (!fd) throw system_error(errno, fmt::format("cannot open {} of process {}", name, pid()));
  return fd;
}

bool LabPart::shares_our_user_namespace() const {
  struct stat ours {};
  struct stat theirs {};
  const UniqueFd fd = open("ns/user", O_RDONLY);
  if (stat("/proc/self/ns/user", &ours) != 0 || fstat(fd.get(), &theirs) != 0)
    throw system_error(errno, fmt::format("cannot look at the user namespace of process {}", pid()));
  return is_same_file(ours, theirs);
}

void LabPart::enter(int namespaces) const {
  if (!shares_our_user_namespace()) {
    uid_t owner = 0;
    const bool known = ioctl(open("ns/user", O_RDONLY).get(), NS_GET_OWNER_UID, &owner) == 0;
    if (geteuid() == 0 || !known || owner != geteuid()) {
      throw Error(ErrorCode::kPermission, fmt::format("process {} is in a user namespace of somebody else's", pid()),
                  "run this as the user, and where, the lab was started");
    }
    namespaces |= CLONE_NEWUSER;
  }
  if (namespaces != 0 && setns(process_.fd().get(), namespaces) != 0)
    throw system_error(errno, fmt::format("cannot enter the namespaces of process {}", pid()));
}

void record_part(const std::string& lab, int number) {
  // Our own number as the machine counts, also in a new PID namespace: this /proc is still the machine's.
  std::error_code failure;
  const std::string self = fs::read_symlink("/proc/self", failure);
  const std::optional<ProcessId> process = living_process(std::atoi(self.c_str()));
  if (!process) throw Error(ErrorCode::kUnsupported, "/proc does not show this process", "is /proc mounted?");
  const PartRecord record{.pid = process->pid, .started = process->started, .boot = this_boot()};
  write_file_atomically(record_file(lab, number), print_json(to_document(record)) + "\n", {.mode = 0600});
  close(kLockFd);
}

void end_parts(const std::string& lab, std::optional<int> number) {
  const Deadline deadline = Deadline::after(10_s);
  std::vector<LabPart> parts;
  for (const int recorded : number ? std::vector{*number} : recorded_parts(lab)) {
    if (auto part = find_part(lab, recorded)) parts.push_back(std::move(*part));
  }
  for (const LabPart& part : parts) part.process().send(SIGKILL);
  for (const LabPart& part : parts) {
    if (!part.process().wait_until_ended(deadline))
      throw Error(ErrorCode::kTimeout, fmt::format("process {} of lab '{}' does not end", part.pid(), lab));
  }
}

UniqueFd open_network(const std::string& lab, int node) {
  if (load_layout(lab).plain) {
    throw Error(ErrorCode::kUnsupported, fmt::format("lab '{}' is plain: its nodes have no network of their own", lab),
                "only power-off and power-on work there");
  }
  const std::optional<LabPart> holder = find_part(lab, kHolderNumber);
  if (!holder) {
    throw Error(ErrorCode::kUnavailable, fmt::format("lab '{}' has lost its holder", lab),
                fmt::format("'yoke lab down --name {}' and start it again", lab));
  }
  holder->enter(0);
  return holder->open(fmt::format("fd/{}", kFirstNamespaceFd + node), O_RDONLY);
}

}  // namespace yoke::lab
