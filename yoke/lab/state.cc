#include "yoke/lab/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/lab/rights.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke::lab {
namespace fs = std::filesystem;

namespace {

fs::path lock_file(const std::string& name) { return lab_folder(name).native() + ".lock"; }

FileLock lock_lab(const std::string& name, FileLockOptions::Interrupt interrupt) {
  // A user who may write here may put a lab of its own in the place of ours.
  const auto prepare = [] {
    make_private_folder(labs_folder().parent_path());
    make_private_folder(labs_folder());
  };
  return {lock_file(name),
          {.busy = fmt::format("another yoke is changing lab '{}'", name),
           .hint = "try again when it is done",
           .prepare = prepare,
           .interrupt = interrupt}};
}

}  // namespace

fs::path labs_folder() {
  if (geteuid() == 0 && !in_user_namespace()) return "/run/yoke/labs";
  return user_runtime_dir(outer_user()) / "labs";
}

fs::path lab_folder(const std::string& name) {
  // Names come from the command line and from cluster files: they must not lead anywhere else.
  if (!spec::is_plain_name(name)) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' cannot be a lab's name", printable(name, 40)),
                "use letters, digits, '-', '_' and '.', with a letter or digit first");
  }
  return labs_folder() / name;
}

fs::path node_folder(const std::string& lab, int node) { return lab_folder(lab) / fmt::format("node-{}", node); }

std::vector<std::string> list_labs() {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator entry(labs_folder(), failure), end; !failure && entry != end; entry.increment(failure)) {
    if (entry->is_directory()) names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool lab_exists(const std::string& name) { return fs::exists(lab_folder(name)); }

void require_own_lab(const std::string& name) {
  const fs::path folder = lab_folder(name);
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) throw system_error(errno, fmt::format("cannot look at {}", folder.native()));
  if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  throw Error(ErrorCode::kPermission,
              fmt::format("{} belongs to another user, or others may write to it", folder.native()),
              "somebody else made it, or may write there: remove it");
}

void save_layout(const LabLayout& layout) {
  write_file_atomically(lab_folder(layout.name) / "lab.json", print_json(to_json(layout)) + "\n", {.mode = 0600});
}

void save_missing(const std::string& name, const std::vector<std::string>& missing) {
  if (!missing.empty())
    write_file_atomically(lab_folder(name) / "missing", fmt::format("{}\n", fmt::join(missing, "\n")));
}

std::vector<std::string> load_missing(const std::string& name) {
  std::vector<std::string> lines = split(DiskTree().read((lab_folder(name) / "missing").native()).value_or(""), '\n');
  std::erase(lines, "");
  return lines;
}

void save_cluster_file(const std::string& name, const fs::path& file) {
  write_file_atomically(lab_folder(name) / "cluster-file", fs::absolute(file).lexically_normal().native() + "\n",
                        {.mode = 0600});
}

fs::path load_cluster_file(const std::string& name) {
  return trim(DiskTree().read((lab_folder(name) / "cluster-file").native()).value_or(""));
}

std::optional<std::int64_t> started_at(const std::string& name) {
  struct stat status {};  // the layout is written once
  if (stat((lab_folder(name) / "lab.json").c_str(), &status) != 0) return std::nullopt;
  return status.st_mtime;
}

std::optional<std::string> lab_owner_elsewhere(const std::string& name) {
  std::vector<fs::path> places = {"/run/yoke/labs"};
  std::error_code failure;
  for (const char* folder : {"/run/user", "/tmp"}) {
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
      const std::string file = entry->path().filename();
      const bool is_session = std::string_view(folder) == "/run/user";
      if (is_session || file.starts_with("yoke-"))
        places.push_back(entry->path() / (is_session ? "yoke/labs" : "labs"));
    }
  }
  for (const fs::path& place : places) {
    struct stat status {};
    if (place == labs_folder() || lstat((place / name).c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    const passwd* entry = getpwuid(status.st_uid);
    return entry ? entry->pw_name : fmt::format("the user {}", status.st_uid);
  }
  return std::nullopt;
}

LabLayout load_layout(const std::string& name) {
  const fs::path file = lab_folder(name) / "lab.json";
  if (!fs::exists(file)) {
    if (const auto owner = lab_owner_elsewhere(name)) {
      throw Error(ErrorCode::kPermission, fmt::format("lab '{}' was started by {}", name, *owner),
                  *owner == "root" ? "use sudo" : fmt::format("be that user: sudo -u {} yoke ...", *owner));
    }
    const std::vector<std::string> labs = list_labs();
    throw Error(ErrorCode::kNotFound, fmt::format("lab '{}' is not running", name),
                labs.empty()
                    ? fmt::format("start it: yoke lab up --name {}", name)
                    : fmt::format("running: {}; to start it: yoke lab up --name {}", fmt::join(labs, ", "), name));
  }
  require_own_lab(name);
  return from_json<LabLayout>(parse_json(read_file(file), file.native()));
}

LabLock::LabLock(const std::string& name)
    : name_(name), lock_(lock_lab(name, FileLockOptions::Interrupt::kEndsTheWait)) {}

void LabLock::retake() {
  lock_.reset();
  lock_ = lock_lab(name_, FileLockOptions::Interrupt::kIsIgnored);
}

const UniqueFd& LabLock::fd() const { return lock_->fd(); }

LabLock::~LabLock() {
  std::error_code ignored;
  if (!fs::exists(lab_folder(name_), ignored)) fs::remove(lock_file(name_), ignored);
}

bool lab_lock_exists(const std::string& name) { return fs::exists(lock_file(name)); }

}  // namespace yoke::lab
