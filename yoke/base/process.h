// Runs other programs: an argument vector, never a shell string. What a program leaves running ends with it.
//
//   const Outcome outcome = run({.argv = {"ip", "-json", "link"}, .timeout = 5_s});
//   if (!outcome.ok()) …                          // its exit status is an answer, not an Error
//
//   Process process({.argv = {"ssh", "spark-2", "yoke", "rank"}, .input_mode = InputMode::kPipe});
//   process.write("hello\n", Deadline::after(1_s));
//   if (const auto line = process.read_line(Deadline::after(1_s))) …
//
// A program that cannot be started is an Error (kNotFound, kPermission, …) naming it. A Process belongs to one thread
// at a time; several threads may each have theirs. Output moves, and on_line is called, inside the calls of the owner:
// there is no thread behind it. Ctrl-C ends each wait with Error(kInterrupted); the program then goes with its Process.
#pragma once
#include <sys/types.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/line_buffer.h"
#include "yoke/base/units.h"

namespace yoke {

enum class OutputStream { kOut, kErr };

enum class InputMode {
  kText,  // `input` or `input_file`, then the end; /dev/null where both are empty
  kPipe,  // stays open for Process::write
};

// Whom kill_tree() ends.
enum class KillScope {
  kTree,   // every descendant, also those that changed their session or were orphaned
  kGroup,  // only what stayed in the child's process group, which spares a daemon that it started on purpose (ssh)
};

struct Command {
  std::vector<std::string> argv = {};                   // argv[0] is looked up in PATH where it has no slash
  std::map<std::string, std::string> environment = {};  // added to ours
  std::optional<std::filesystem::path> folder = {};     // to run in; ours where missing
  std::string input = {};
  std::optional<std::filesystem::path> input_file = {};  // instead of `input`
  InputMode input_mode = InputMode::kText;
  Seconds timeout{3600};           // for run(); a Process takes a deadline with each call instead
  Seconds grace{1};                // between SIGTERM and SIGKILL
  Bytes output_limit{64LL << 20};  // what is kept of each stream; the rest is read and dropped
  KillScope kill_scope = KillScope::kTree;
  // Called for every line as it comes, without its newline, besides its being kept. Lines longer than 1 MiB come in
  // pieces; a last line without newline comes too. The bytes are as the program wrote them, UTF-8 or not.
  std::function<void(OutputStream, std::string_view line)> on_line = {};
};

// Whether a program lies in one of the system's folders; a user's PATH may lack those of root.
bool is_installed(std::string_view program);

// As shells have it, from what waitpid() tells: 128 + n where signal n ended the process.
int exit_status_of(int wait_status);

// The argv as one would type it, for messages.
std::string to_string(const Command& command);

struct Outcome {
  int exit_status = 0;             // 128 + n where signal n ended it, as shells have it
  std::optional<int> signal = {};  // what ended it, if a signal
  std::string out = {}, err = {};
  bool timed_out = false;
  bool truncated = false;  // output beyond the limit was dropped

  bool ok() const { return exit_status == 0 && !timed_out; }
  // "exited with status 3: no such device" (the last words of err), "was ended by signal 11", "took too long".
  std::string describe() const;
};

// Waits for the end or the timeout, at which the whole tree is killed and `timed_out` set.
Outcome run(const Command& command);
// The same, with an Error naming the program where the outcome is not ok.
Outcome run_or_throw(const Command& command);

class Process {
 public:
  explicit Process(Command command);  // starts it; `timeout` is not used
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();  // kills the tree and reaps; what it still wrote is dropped

  pid_t pid() const { return pid_; }

  // Writes all, and meanwhile takes in what the program writes, so that neither waits for the other. kTimeout at the
  // deadline; kUnavailable where the program closed its input.
  void write(std::string_view data, Deadline deadline);
  void close_input();

  struct Line {
    OutputStream stream;
    std::string text;  // without the newline
  };
  // The next line of either stream; nothing at the deadline and at the end of output, which at_end() tells apart.
  // Lines and bytes taken are not part of the Outcome.
  std::optional<Line> read_line(Deadline deadline);
  // True once something can be read or all has ended, false at the deadline.
  bool poll_output(Deadline deadline);
  // The next bytes of one stream, as many as there are, at most `most`; empty at the deadline and at its end.
  std::string read_bytes(OutputStream stream, std::size_t most, Deadline deadline);
  bool at_end() const;                     // both streams ended and all was taken
  bool at_end(OutputStream stream) const;  // this one

  // How it ended, with the output not yet taken; nothing at the deadline, and then it may be called again. What it
  // left in the background is killed (KillScope::kTree), a second after its end at the latest: the one that still holds
  // its output is not waited for.
  std::optional<Outcome> wait(Deadline deadline);

  // SIGTERM, then SIGKILL after the grace, to the whole tree, until nothing is left. Does nothing after the end.
  // With kTree only a process that left the tree of parents *and* cleaned its environment escapes.
  void kill_tree() noexcept;

 private:
  struct Stream {
    UniqueFd fd;  // missing after its end
    LineBuffer kept;
    LineBuffer to_deliver;  // to on_line
  };
  enum class KillTarget { kAll, kDescendants };

  Stream& stream(OutputStream which) { return streams_[static_cast<std::size_t>(which)]; }
  const Stream& stream(OutputStream which) const { return streams_[static_cast<std::size_t>(which)]; }
  void wait_for_output(int timeout_ms);  // as pump, ended by Ctrl-C
  void pump(int timeout_ms);
  void pump_quietly(int timeout_ms) noexcept;
  void feed_input();
  bool read_stream(OutputStream which);
  void take_in(OutputStream which, std::string_view data);
  void end_stream(OutputStream which);
  void deliver_lines(OutputStream which, LineBuffer::More more);
  bool exited() const;
  void end_tree(KillTarget whom) noexcept;
  void kill_rest() noexcept;
  void reap() noexcept;

  Command command_;
  std::string token_;  // marks its descendants: see process_tree.h
  pid_t pid_ = -1;
  UniqueFd input_;
  std::string to_write_;
  std::size_t written_ = 0;  // of to_write_
  std::array<Stream, 2> streams_;
  std::optional<int> status_;  // as waitpid gave it, once reaped
  bool truncated_ = false;
  int interrupts_ = 0;  // as many had come when it was started
};

}  // namespace yoke
