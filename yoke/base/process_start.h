// The one place that starts other programs: a child with its streams, and nothing else of ours inherited. Used by
// process.cc (start_program), by run_at_terminal.cc and by the supervisor of ranks (start_child).
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke {

struct ChildPlan {
  std::string program;  // looked up in the PATH of `environment` where it has no slash
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  std::optional<std::string> folder = {};
  enum class Folder { kRequired, kIfThere } folder_use = Folder::kRequired;
  int input = -1, out = -1, err = -1;                               // above 2
  int further = -1;                                                 // one more that it inherits, at its number
  enum class Session { kNew, kOurs } session = Session::kNew;       // kOurs: with our terminal and process group
  enum class Orphan { kLives, kIsKilled } orphan = Orphan::kLives;  // when the thread that started it ends
};

struct ChildFailure {
  enum class Step : int { kFolder, kStreams, kProgram } step;
  int error_number;
};

struct StartedChild {
  pid_t pid = -1;
  std::optional<ChildFailure> failure = {};  // then there is no child
};

// Returns once the program runs, or has failed to. Unless `session` says otherwise it leads its own session, and so its
// own process group. Signals are as a new program expects them; only an ignored SIGHUP (nohup) stays so.
StartedChild start_child(const ChildPlan& plan);

// Above 2, also in a program whose standard streams are closed: a child moves these onto 0, 1 and 2.
UniqueFd above_standard(UniqueFd fd);
struct Pipe {
  UniqueFd read, write;
};
Pipe make_pipe();  // above 2
void set_nonblocking(const UniqueFd& fd);

struct StartedProgram {
  pid_t pid = -1;
  UniqueFd input;  // missing where the input is a file or nothing
  UniqueFd out, err;
};

// Returns once the program runs (or throws why not). It leads its own session, and so its own process group, and has
// `token` in its environment's YOKE_PROCESS, behind the tokens that we ourselves carry. Our ends of the pipes do not
// block.
StartedProgram start_program(const Command& command, const std::string& token);

}  // namespace yoke
