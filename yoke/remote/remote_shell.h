// A machine where programs can be run, whether by ssh (ssh_shell.h) or this one itself (local_shell.h).
//
//   Outcome outcome = shell.run({.argv = {"uname", "-m"}, .timeout = 10_s});
//   std::unique_ptr<RemoteProcess> rank = shell.start({.argv = {"yoke", "rank"}, .input_mode = InputMode::kPipe});
//   shell.copy_to("plan.json", "/tmp/plan.json");
//
// A Command means there what it means here (process.h): environment and folder are of the far side, input_file of this
// one. What the program itself answers is an Outcome; a machine that cannot be reached, or is lost, is an Error with a
// hint. A shell may be used by several threads at once, a RemoteProcess by one at a time.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/process.h"
#include "yoke/remote/host.h"

namespace yoke::remote {

// As Process (process.h), over there.
class RemoteProcess {
 public:
  virtual ~RemoteProcess() = default;  // ends it, as kill() does

  virtual void write(std::string_view data, Deadline deadline) = 0;
  virtual void close_input() = 0;
  virtual std::optional<Process::Line> read_line(Deadline deadline) = 0;
  virtual std::string read_bytes(OutputStream stream, std::size_t most, Deadline deadline) = 0;
  virtual bool at_end(OutputStream stream) const = 0;
  virtual std::optional<Outcome> wait(Deadline deadline) = 0;
  virtual void kill() noexcept = 0;
};

struct CopyOptions {
  Seconds timeout{600};
  std::optional<unsigned> mode = {};  // permissions; as the source has them where missing
};

class RemoteShell {
 public:
  virtual ~RemoteShell() = default;

  virtual const Host& host() const = 0;
  virtual Outcome run(const Command& command) = 0;
  virtual std::unique_ptr<RemoteProcess> start(const Command& command) = 0;

  // A file, whole: written beside, size and (where the far side has sha256sum) SHA-256 compared, synced, renamed over.
  // The one that opens it sees the old or the new content. A path of the far side may be relative to the user's home.
  virtual void copy_to(const std::filesystem::path& local, const std::string& remote, const CopyOptions& options = {});
};

// The Error for a tool of the far side that failed, by the words of the C library that it wrote: a full disk is
// kExhausted, and so on.
Error remote_tool_error(const Host& host, std::string_view what, const Outcome& outcome);

}  // namespace yoke::remote
