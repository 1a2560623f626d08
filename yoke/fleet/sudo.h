// Root on a node for a user who is not root there: by sudo, without a question where it is allowed so, else with the
// password of the person at the terminal, who is asked once for all nodes. The password goes to sudo's input and
// nowhere else: it stands in no command line, file or message.
#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/remote/remote_shell.h"

namespace yoke::fleet {

// Any thread may ask for it; the person is asked by the first.
class SudoPassword {
 public:
  // Gives what the person types, without the line's end; may throw.
  using Ask = std::function<std::string(const std::string& node)>;
  explicit SudoPassword(Ask ask) : ask_(std::move(ask)) {}
  ~SudoPassword();
  SudoPassword(const SudoPassword&) = delete;
  SudoPassword& operator=(const SudoPassword&) = delete;

  const std::string& line(const std::string& node);  // with the line's end, as sudo reads it
  bool given();                                      // somebody was asked, and did not leave it empty

 private:
  Ask ask_;
  std::mutex mutex_;
  std::optional<std::string> line_;
};

// How a program is started as root over there.
struct RootStart {
  std::vector<std::string> argv;
  std::string input;  // to be written before anything else
};

// `argv` must end by itself, with status 0, when it finds its input at an end: so it is tried whether sudo lets us.
// Throws Error(kPermission) with the ways to be let.
RootStart start_as_root(remote::RemoteShell& shell, const std::vector<std::string>& argv, SudoPassword* password);

// The line for sudoers that lets this user run this one program, as long as its content is the same.
std::string sudoers_line(const std::string& user, const std::string& sha256, const std::vector<std::string>& argv);

}  // namespace yoke::fleet
