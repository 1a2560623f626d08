#include "yoke/cli/lab_head.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/node_access.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

std::optional<std::string> lab_of(const Session& session) {
  if (session.lab) return session.lab;
  // A file that cannot be read is told by the command that needs it; one that is not there, too.
  const auto read = try_to([&] { return read_session_cluster(session); });
  if (!read && read.error().code() == ErrorCode::kNotFound) throw Error(read.error());
  const std::optional<Cluster> cluster = read ? *read : std::nullopt;
  return cluster ? cluster->lab : std::nullopt;
}

// Our arguments without --lab and --cluster, whose place the node's own copy of the cluster file takes.
std::vector<std::string> arguments_there(const std::string& program, const std::vector<std::string>& arguments,
                                         const std::string& file) {
  std::vector<std::string> words = {program};
  bool skip = false;
  bool rest = false;  // after "--" nothing is ours
  for (const std::string& word : arguments) {
    if (skip) {
      skip = false;
    } else if (!rest && (word == "--lab" || word == "--cluster")) {
      skip = true;
    } else if (rest || !(word.starts_with("--lab=") || word.starts_with("--cluster="))) {
      if (word == "--" && !rest) {
        words.insert(words.end(), {"--cluster", file});
        rest = true;
      }
      words.push_back(word);
    }
  }
  if (!rest) words.insert(words.end(), {"--cluster", file});
  return words;
}

}  // namespace

std::string lab_meant(const Session& session, const std::optional<std::string>& name) {
  if (name) return *name;
  const std::optional<std::string> lab = lab_of(session);
  const std::vector<std::string> labs = list_labs();
  return lab && std::find(labs.begin(), labs.end(), *lab) != labs.end() ? *lab : choose_lab(session.lab);
}

std::optional<int> run_on_lab_head(const Session& session, const std::vector<std::string>& arguments) {
  if (in_node()) return std::nullopt;
  const std::optional<std::string> lab = lab_of(session);
  if (!lab) return std::nullopt;
  const LabLayout layout = load_layout(*lab);
  const LabNode& head = layout.nodes.front();
  if (!find_part(*lab, head.number)) {
    throw Error(ErrorCode::kUnavailable, fmt::format("the head node {} of lab '{}' is powered off", head.name, *lab),
                fmt::format("'yoke lab fault power-on --node {}' starts it", head.name));
  }
  // With --lab alone the cluster is the lab's own.
  const auto file = session.lab ? std::nullopt : find_cluster_file(session);
  const std::string content = file ? read_file(*file) : print_cluster(lab_cluster(layout));
  const std::string name = fmt::format("cluster-{}.yaml", random_token_hex(6));
  const std::string there = (layout.plain ? node_folder(*lab, head.number) : fs::path("/run/yoke-lab")) / name;
  // A plain node has no files of its own, and so no program in its place.
  const std::string program = layout.plain ? fs::read_symlink("/proc/self/exe").native() : "/usr/local/bin/yoke";
  if (layout.plain) {
    write_file_atomically(there, content);
  } else {
    NodeAccess(*lab, head).write(there, content);
  }
  const int status = run_in_node(*lab, head, arguments_there(program, arguments, there));
  std::error_code ignored;
  if (layout.plain) {
    fs::remove(there, ignored);
  } else {
    (void)try_to([&] { NodeAccess(*lab, head).remove(there); });  // it went with a node that was powered off meanwhile
  }
  return status;
}

}  // namespace yoke
