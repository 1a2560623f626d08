// Tells the output of our program from everything else that an ssh session prints. A login shell's startup files may
// write to both streams, and ssh exits with 255 both when it failed itself and when the program did. So the command is
// wrapped in a script that writes marks around it: one at the start of each stream, with the process number, and one at
// the end of stderr, with the exit status. Without the end mark it was not the program that ended.
//
// The marks hold a random token that the command line holds only in two rails, so that a program that prints the
// process list cannot imitate them. There is no end mark on stdout: it would hold back the last bytes of a binary
// protocol that happen to look like its beginning. A mark's first byte is a control character that texts do not hold.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/process.h"

namespace yoke::remote {

// The marks' token, and the one that all processes of the command carry in their environment over there.
struct FrameTokens {
  std::string mark;
  std::string process;
};
FrameTokens make_frame_tokens();

// What the login shell is given. Throws Error(kInvalid) for what no shell can run.
std::string framed_command(const Command& command, const FrameTokens& tokens);

// What ends all processes of such a command, as a script for another session: SIGTERM, a second later SIGKILL.
std::string ending_command(std::string_view process_number, const FrameTokens& tokens);

// One stream of the session: give it what comes, take what the program wrote.
class FrameReader {
 public:
  enum class Ends { kByMark, kWithStream };
  FrameReader(const FrameTokens& tokens, Ends ends) : mark_("\x1e" + tokens.mark), ends_(ends) {}

  std::string take(std::string_view data);
  std::string finish();  // at the end of the stream: what was held back, as it may have become a mark

  bool began() const { return began_; }
  const std::string& process_number() const { return process_number_; }
  // What the end mark says: the exit status, or why the program was not started.
  enum class End { kNone, kStatus, kNoProgram, kNoFolder };
  End end() const { return end_; }
  int status() const { return status_; }
  // What came before the start, for messages where there was none; the last of it.
  std::string_view noise() const { return began_ ? std::string_view() : std::string_view(held_); }
  std::size_t noise_size() const { return noise_size_; }  // bytes of it; 0 after the start

 private:
  bool find_begin();
  void read_end(std::string_view text);

  std::string mark_;
  Ends ends_;
  std::string held_;
  std::size_t noise_size_ = 0;
  bool began_ = false;
  bool broken_ = false;  // an end mark that no script of ours wrote: nothing after it is the program's
  std::string process_number_;
  End end_ = End::kNone;
  int status_ = 0;
};

}  // namespace yoke::remote
