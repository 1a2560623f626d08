// A program behind an agent, its streams carried by the agent's connection: what RemoteProcess is over ssh alone.
#pragma once
#include <array>
#include <memory>

#include "yoke/base/line_buffer.h"
#include "yoke/fleet/connection.h"

namespace yoke::fleet {

class Channel final : public remote::RemoteProcess {
 public:
  // `id` is of a question that names a program on `node`.
  Channel(std::shared_ptr<Connection> connection, std::uint32_t id, std::string node);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() override;

  void write(std::string_view data, Deadline deadline) override;
  void close_input() override;
  std::optional<Process::Line> read_line(Deadline deadline) override;
  std::string read_bytes(OutputStream stream, std::size_t most, Deadline deadline) override;
  bool at_end(OutputStream stream) const override;
  // Throws what ended the connection, where that was not the program's own end.
  std::optional<Outcome> wait(Deadline deadline) override;
  void kill() noexcept override;

 private:
  LineBuffer& kept(OutputStream stream) { return kept_[static_cast<std::size_t>(stream)]; }
  bool move(Deadline deadline);

  std::shared_ptr<Connection> connection_;
  std::uint32_t id_;
  std::string node_;
  std::array<LineBuffer, 2> kept_;
  bool ended_ = false;
  int exit_status_ = 0;
  std::optional<Error> failure_;
};

}  // namespace yoke::fleet
