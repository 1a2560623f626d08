// Puts the running program onto a node that lacks it, so that a cluster needs yoke installed on one machine only. It
// lies there by its content, at $XDG_CACHE_HOME/yoke/<SHA-256>/yoke (or under ~/.cache): another version is another
// file, and nothing that runs is overwritten. Several carriers may come at once.
//
//   const ProgramFile program("/proc/self/exe");
//   NodeLook look;
//   auto process = start_carried(shell, program, {.words = {"agent"}}, look);   // one execution of ssh
//   const std::string there = deploy_program(shell, "/proc/self/exe");
#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/remote/remote_shell.h"

namespace yoke::remote {

struct CarryOptions {
  Seconds timeout{600};
};

// The program that is carried. Its content is hashed at the first use, once, by whichever thread comes first.
class ProgramFile {
 public:
  explicit ProgramFile(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }
  const std::string& machine() const { return known().machine; }
  const std::string& hash() const { return known().hash; }
  std::int64_t size() const { return known().size; }

 private:
  struct Known {
    std::string machine, hash;
    std::int64_t size = 0;
  };
  const Known& known() const;

  std::filesystem::path path_;
  mutable std::mutex mutex_;
  mutable std::optional<Known> known_;
};

// What a login shows: who we are over there, on what, and whether the program is there.
struct NodeLook {
  std::string machine = {};   // uname -m; empty until ssh has let us in
  std::string hostname = {};  // uname -n
  std::string user = {};
  bool is_root = false;
  std::string reached_at = {};  // the node's address that ssh came in by; empty where it did not
  std::string path = {};        // where the program lies, or would
  bool whole = false;           // it is there, by SHA-256, or by size where the node has no sha256sum
  std::optional<Bytes> free = {};
};

// Which user starts the program at once. With kRootOnly others are only looked at: sudo comes in between.
enum class StartAs { kNobody, kAnybody, kRootOnly };
struct CarriedStart {
  std::vector<std::string> words = {};  // behind the program's path
  StartAs as = StartAs::kAnybody;
  Seconds inspect_limit{60};
};
// Looks, and in the same session starts the program with an open input where it is there and `as` allows it; nothing
// where it is not. What was seen until an Error is in `look`.
std::unique_ptr<RemoteProcess> start_carried(RemoteShell& shell, const ProgramFile& program, const CarriedStart& start,
                                             NodeLook& look);
NodeLook find_deployed_program(RemoteShell& shell, const ProgramFile& program);
// To where the look says. Throws kUnsupported for a node with another kind of processor, kExhausted for a full disk.
// Versions that nobody carried for 30 days are deleted with the next that is copied.
void copy_program(RemoteShell& shell, const ProgramFile& program, const NodeLook& look,
                  const CarryOptions& options = {});

// Looks, and copies where it is missing: the path over there.
std::string deploy_program(RemoteShell& shell, const std::filesystem::path& program, const CarryOptions& options = {});

// "x86_64", "aarch64": what `uname -m` says where this program runs. Throws kInvalid for what is no ELF program.
std::string program_machine(const std::filesystem::path& program);

}  // namespace yoke::remote
