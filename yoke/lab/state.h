// Where labs are kept track of: one folder each below /run/yoke/labs (for a user without root, below the runtime
// folder). It holds lab.json, the keys and logs of the nodes, and a lock; the running parts are found by their command
// line, not by pid files, so that a starter killed at any moment leaves nothing that `down` would miss.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/lab/layout.h"

namespace yoke {

std::filesystem::path labs_folder();
std::filesystem::path lab_folder(const std::string& name);
std::filesystem::path node_folder(const std::string& lab, int node);

std::vector<std::string> list_labs();  // sorted
bool lab_exists(const std::string& name);

void save_layout(const LabLayout& layout);
LabLayout load_layout(const std::string& name);  // an Error that lists the labs there are

// What this machine could not give to the lab, a line each; none where all is there.
void save_missing(const std::string& name, const std::vector<std::string>& missing);
std::vector<std::string> load_missing(const std::string& name);

// The lab meant: the one named, or else the only one there is.
std::string choose_lab(const std::optional<std::string>& name);

// One change of a lab at a time, over all processes. Waits up to ten seconds, then says who holds it up. Its file goes
// with the lab: whoever leaves no lab behind removes it. A part that was forked but has not yet taken on its command
// line holds the lock too, so that who has it sees every part in find_lab_processes().
class LabLock {
 public:
  explicit LabLock(const std::string& name);
  ~LabLock();
  LabLock(const LabLock&) = delete;
  LabLock& operator=(const LabLock&) = delete;

 private:
  std::string name_;
  UniqueFd fd_;
};
bool lab_lock_exists(const std::string& name);

// The processes that make up a lab, as this machine numbers them.
struct LabProcess {
  pid_t pid = 0;
  int node = 0;        // 0: the keeper
  bool first = false;  // the node's first process: with it the node ends
};
std::vector<LabProcess> find_lab_processes(const std::string& name);
std::optional<pid_t> find_keeper(const std::string& name);
std::optional<pid_t> find_node_init(const std::string& name, int node);  // nothing: powered off
// Kills them all, or those of one node, and waits until each is gone with all that it had started.
void end_lab_processes(const std::string& name, std::optional<int> node = std::nullopt);

// "/proc/<keeper>/fd/<n>": the network namespace of a node, or of the switch (0). To have the right to enter it, this
// process is in the lab's user namespace then, where that is another; so before any thread is started.
std::filesystem::path network_namespace(const std::string& name, int node);

}  // namespace yoke
