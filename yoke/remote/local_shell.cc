#include "yoke/remote/local_shell.h"

namespace yoke::remote {
namespace {

class LocalProcess : public RemoteProcess {
 public:
  explicit LocalProcess(const Command& command) : process_(command) {}

  void write(std::string_view data, Deadline deadline) override { process_.write(data, deadline); }
  void close_input() override { process_.close_input(); }
  std::optional<Process::Line> read_line(Deadline deadline) override { return process_.read_line(deadline); }
  std::string read_bytes(OutputStream stream, std::size_t most, Deadline deadline) override {
    return process_.read_bytes(stream, most, deadline);
  }
  bool at_end(OutputStream stream) const override { return process_.at_end(stream); }
  std::optional<Outcome> wait(Deadline deadline) override { return process_.wait(deadline); }
  void kill() noexcept override { process_.kill_tree(); }

 private:
  Process process_;
};

}  // namespace

std::unique_ptr<RemoteProcess> LocalShell::start(const Command& command) {
  return std::make_unique<LocalProcess>(command);
}

}  // namespace yoke::remote
