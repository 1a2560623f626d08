// Where labs are kept track of: one folder each below /run/yoke/labs (for a user without root, below the runtime
// folder). It holds lab.json, the keys and logs of the nodes, and what each running part recorded of itself (parts.h).
// All of it is believed, so the folder must be ours and closed to others.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/file_lock.h"
#include "yoke/lab/layout.h"

namespace yoke::lab {

std::filesystem::path labs_folder();
std::filesystem::path lab_folder(const std::string& name);
std::filesystem::path node_folder(const std::string& lab, int node);

std::vector<std::string> list_labs();  // sorted
bool lab_exists(const std::string& name);
void require_own_lab(const std::string& name);  // kPermission where its folder is another user's, or open to others

void save_layout(const LabLayout& layout);
LabLayout load_layout(const std::string& name);  // an Error that lists the labs there are
// Who else on this machine runs a lab of this name, as far as we may look; nothing where nobody does.
std::optional<std::string> lab_owner_elsewhere(const std::string& name);

// What this machine could not give to the lab, a line each; none where all is there.
void save_missing(const std::string& name, const std::vector<std::string>& missing);
std::vector<std::string> load_missing(const std::string& name);

// The cluster file that was written for the lab, and when the lab was started; an empty path where none is known.
void save_cluster_file(const std::string& name, const std::filesystem::path& file);
std::filesystem::path load_cluster_file(const std::string& name);
std::optional<std::int64_t> started_at(const std::string& name);  // seconds since 1970

// One change of a lab at a time, over all processes. Waits up to ten seconds, then says who holds it up. Its file goes
// with the lab: the one that leaves no lab behind removes it. A part that is starting shares its starter's lock until
// it has recorded itself.
class LabLock {
 public:
  explicit LabLock(const std::string& name);
  // Lets go of it and takes it again: then every part that we started has recorded itself, or is gone. Not ended by
  // Ctrl-C.
  void retake();
  const UniqueFd& fd() const;
  ~LabLock();
  LabLock(const LabLock&) = delete;
  LabLock& operator=(const LabLock&) = delete;

 private:
  std::string name_;
  std::optional<FileLock> lock_;
};
bool lab_lock_exists(const std::string& name);

}  // namespace yoke::lab
