#include "yoke/lab/rights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"

namespace yoke::lab {
using namespace literals;
namespace {

constexpr const char* kPlainHint = "or 'yoke lab up --plain' for nodes as plain processes";

// sshd's user has the group 65534 on Debian and Ubuntu, which must be among the ids lent.
constexpr std::uint32_t kMinIds = 65534;

struct IdRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

std::string user_name(uid_t user) {
  const passwd* entry = getpwuid(user);
  return entry ? entry->pw_name : fmt::format("{}", user);
}

std::optional<std::uint32_t> number_from(std::string_view text) {
  std::uint32_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// Lines of /etc/subuid and /etc/subgid: "name-or-uid:first:count".
IdRange lent_ids(const char* file) {
  const std::string name = user_name(geteuid());
  const std::string number = fmt::format("{}", geteuid());
  IdRange largest;
  for (const std::string& line : split(DiskTree().read(file).value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() != 3 || (parts[0] != name && parts[0] != number)) continue;
    const auto first = number_from(parts[1]);
    const auto count = number_from(trim(parts[2]));
    if (first && count && *count > largest.count) largest = {*first, *count};
  }
  if (largest.count < kMinIds) {
    throw Error(
        ErrorCode::kPermission,
        fmt::format("a lab without root needs {} further ids, and {} lends {} to {}", kMinIds + 2, file,
                    largest.count == 0 ? "none" : fmt::format("only {}", largest.count), name),
        fmt::format("have root add the line '{}:100000:65536' to {}, run it with sudo, {}", name, file, kPlainHint));
  }
  return largest;
}

void require_id_programs() {
  for (const char* program : {"newuidmap", "newgidmap"}) {
    if (!is_installed(program)) {
      throw Error(ErrorCode::kNotFound, fmt::format("a lab without root needs {}, which is not installed", program),
                  fmt::format("apt-get install uidmap, run it with sudo, {}", kPlainHint));
    }
  }
}

bool kernel_setting_is(const char* name, std::string_view value) {
  return DiskTree().read_trimmed(fmt::format("/proc/sys/{}", name)) == value;
}

// Ubuntu's. Switching it off would open user namespaces to every program of the machine, so a profile is advised.
bool apparmor_forbids() { return kernel_setting_is("kernel/apparmor_restrict_unprivileged_userns", "1"); }
constexpr const char* kProfileHint =
    "AppArmor allows them to the programs that have a profile: docs/lab.md ('Ubuntu') has one for yoke alone. Or run "
    "it with sudo";

// The setting of the kernel that forbids user namespaces, as the command that allows them.
std::string what_forbids() {
  if (kernel_setting_is("user/max_user_namespaces", "0")) {
    return "'sysctl -w user.max_user_namespaces=10000' as root allows them";
  }
  if (kernel_setting_is("kernel/unprivileged_userns_clone", "0")) {
    return "'sysctl -w kernel.unprivileged_userns_clone=1' as root allows them to all users";
  }
  if (apparmor_forbids()) return kProfileHint;
  return "run it with sudo";
}

[[noreturn]] void refuse_user_namespace(int error_number) {
  throw Error(
      ErrorCode::kPermission,
      fmt::format("a lab without root needs user namespaces, which this machine refuses: {}", strerror(error_number)),
      fmt::format("{}, {}", what_forbids(), kPlainHint));
}

// In a child that stays outside: once we are inside, lets newuidmap and newgidmap write our maps.
[[noreturn]] void write_maps_for(pid_t process, const IdRange& users, const IdRange& groups, UniqueFd inside,
                                 const UniqueFd& answer) {
  char byte = 0;
  if (read(inside.get(), &byte, 1) != 1) _exit(1);
  const auto map = [&](const char* program, std::uint32_t own, const IdRange& lent) {
    std::vector<std::string> argv = {program};
    for (const std::uint32_t number : {static_cast<std::uint32_t>(process), 0U, own, 1U, 1U, lent.first, lent.count})
      argv.push_back(fmt::format("{}", number));
    run_or_throw({.argv = argv, .timeout = 10_s});
  };
  try {
    map("newuidmap", geteuid(), users);
    map("newgidmap", getegid(), groups);
    _exit(0);
  } catch (const std::exception& failure) {
    const std::string_view text = failure.what();
    if (write(answer.get(), text.data(), text.size()) < 0) { /* the exit status says it too */
    }
    _exit(1);
  }
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void enter_new_user_namespace() {
  require_id_programs();
  const IdRange users = lent_ids("/etc/subuid");
  const IdRange groups = lent_ids("/etc/subgid");
  Pipe inside = make_pipe();
  Pipe answer = make_pipe();
  const pid_t us = getpid();
  const pid_t helper = fork_call([&]() -> int {
    inside.write_end.reset();
    write_maps_for(us, users, groups, std::move(inside.read_end), answer.write_end);
  });
  answer.write_end.reset();
  // The network namespace is for `ip`, which makes links from where it is.
  const bool entered = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
  const int error_number = errno;
  if (entered) write_all(inside.write_end, "i", "the helper's pipe");
  inside.write_end.reset();
  char text[1024];
  const std::size_t count = read_some(answer.read_end, text, sizeof text, "the helper's pipe");
  const int status = wait_for_child(helper);
  if (!entered) refuse_user_namespace(error_number);
  if (status != 0) {
    throw Error(ErrorCode::kPermission,
                fmt::format("cannot map the ids of a user namespace: {}", std::string_view(text, count)),
                fmt::format("run it with sudo, {}", kPlainHint));
  }
}

struct IdMapping {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
};

// Lines of "inside outside count", in columns.
std::vector<IdMapping> read_id_map(const char* file) {
  std::vector<IdMapping> rows;
  for (const std::string& line : split(DiskTree().read(fmt::format("/proc/self/{}", file)).value_or(""), '\n')) {
    std::vector<std::string> words = split(line, ' ');
    std::erase(words, "");
    if (words.size() != 3) continue;
    rows.push_back(
        {number_from(words[0]).value_or(0), number_from(words[1]).value_or(0), number_from(words[2]).value_or(0)});
  }
  return rows;
}

// In a user namespace that somebody else made for us.
void require_mapped_ids(const char* file) {
  for (const IdMapping& row : read_id_map(file)) {
    if (row.inside <= kMinIds && kMinIds < std::uint64_t{row.inside} + row.count) return;
  }
  throw Error(
      ErrorCode::kPermission, fmt::format("this user namespace lacks the id {}, which sshd needs", kMinIds),
      fmt::format("start the lab outside of it, or make it by 'unshare --map-root-user --map-auto', {}", kPlainHint));
}

// Tried out in a child, because the ways to forbid it are many: capabilities, seccomp, AppArmor, limits.
void require_namespaces() {
  const int status = run_forked([] {
    const bool may = unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) == 0 &&
                     mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    return may ? 0 : errno;
  });
  if (status == 0) return;
  // AppArmor may let a program into a user namespace and then take all its rights there.
  const bool by_profile = in_user_namespace() && apparmor_forbids();
  throw Error(
      ErrorCode::kPermission,
      fmt::format("this machine does not let us make namespaces and mounts: {}",
                  WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "killed by the system"),
      fmt::format("{}, {}",
                  by_profile ? kProfileHint : "in a container: run it with --privileged, which gives it CAP_SYS_ADMIN",
                  kPlainHint));
}

}  // namespace

// Of the first namespace the map is one line of all ids.
bool in_user_namespace() {
  if (geteuid() != 0) return false;
  const std::vector<IdMapping> rows = read_id_map("uid_map");
  return !rows.empty() && (rows.size() > 1 || rows.front().inside != 0 || rows.front().outside != 0 ||
                           rows.front().count != std::numeric_limits<std::uint32_t>::max());
}

uid_t outer_user() {
  if (!in_user_namespace()) return geteuid();
  for (const IdMapping& row : read_id_map("uid_map")) {
    if (row.inside == 0) return row.outside;
  }
  return geteuid();
}

void take_lab_rights() {
  if (geteuid() != 0) {
    enter_new_user_namespace();
  } else if (in_user_namespace()) {
    require_mapped_ids("uid_map");
    require_mapped_ids("gid_map");
    if (unshare(CLONE_NEWNET) != 0) refuse_user_namespace(errno);
  }
  require_namespaces();
}

}  // namespace yoke::lab
