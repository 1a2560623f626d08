// What was done with a cluster from here: reached, discovered, set up, checked, asked. Each command leaves its exit
// status, in one small file of the user's data folder, and `yoke` alone reads it. A cluster file that was changed, or a
// lab that was started again, has nothing to show.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/terminal/session.h"

namespace yoke::status {

struct Milestone {
  int exit_status = 0;    // kMilestoneBegun while it runs, and where it was killed
  std::int64_t when = 0;  // seconds since 1970
};
inline constexpr int kMilestoneBegun = -1;

using Milestones = std::map<std::string, Milestone>;  // by command: "link setup", "check"

// Of the cluster that this session is about; none where there is no cluster.
Milestones recall_milestones(const terminal::Session& session);

// Around a command: what it returns or throws is recorded, where the command is one that counts.
class MilestoneHolder {
 public:
  MilestoneHolder(const terminal::Session& session, std::vector<std::string> path);  // {"yoke", "link", "setup"}
  void end(int exit_status);

 private:
  const terminal::Session& session_;
  std::optional<std::string> command_;
};

}  // namespace yoke::status
