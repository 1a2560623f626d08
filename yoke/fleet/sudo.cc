#include "yoke/fleet/sudo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"

namespace yoke::fleet {
namespace {

using namespace literals;

constexpr Seconds kSudoLimit{30};
constexpr const char* kUserLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

std::string last_words(const Outcome& outcome) {
  const std::string_view err = trim(outcome.err);
  std::string_view last = err.substr(err.rfind('\n') + 1);
  if (last.starts_with("sudo: ")) last.remove_prefix(6);
  return printable(last, 160);
}

std::vector<std::string> with_words(std::vector<std::string> words, const std::vector<std::string>& argv) {
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

std::string user_there(remote::RemoteShell& shell) {
  const Outcome outcome = shell.run({.argv = {"id", "-un"}, .timeout = 20_s});
  return outcome.ok() ? printable(trim(outcome.out), 64) : "USER";
}

// As a whole, whatever letters the path of a node's program has.
std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Error refusal(remote::RemoteShell& shell, const std::vector<std::string>& argv, const std::string& why) {
  const std::string user = user_there(shell);
  const std::string line = sudoers_line(user, sha256_file_hex("/proc/self/exe"), argv);
  return Error(
      ErrorCode::kPermission,
      fmt::format("{}: this needs root, and for {} sudo prints: {}", shell.host().name, user, why),
      fmt::format("run it at a terminal and give {0}'s password. Without a terminal, on {1}: echo {2} | sudo tee "
                  "/etc/sudoers.d/yoke (makes {0} root there without a password: remove it afterwards; docs/link.md)",
                  user, shell.host().name, in_quotes(line)));
}

}  // namespace

SudoPassword::~SudoPassword() {
  if (line_) explicit_bzero(line_->data(), line_->size());
}

const std::string& SudoPassword::line(const std::string& node) {
  const std::lock_guard lock(mutex_);
  if (!line_) line_ = ask_(node) + "\n";
  return *line_;
}

bool SudoPassword::given() {
  const std::lock_guard lock(mutex_);
  return line_ && *line_ != "\n";
}

RootStart start_as_root(remote::RemoteShell& shell, const std::vector<std::string>& argv, SudoPassword* password) {
  const auto sudo = [&](const std::vector<std::string>& options, const std::string& input) {
    return shell.run({.argv = with_words(with_words({"sudo"}, options), argv), .input = input, .timeout = kSudoLimit});
  };
  Outcome outcome;
  try {
    outcome = sudo({"-n"}, "");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kPermission, fmt::format("{}: this needs root, and there is no sudo", shell.host().name),
                fmt::format("log in there as root: user: root in the cluster file, and ssh-copy-id root@{}",
                            shell.host().address));
  }
  if (outcome.ok()) return {with_words({"sudo", "-n"}, argv), ""};
  if (!password) throw refusal(shell, argv, last_words(outcome));
  // -k: whatever was typed there before, the password is read, so that it never comes to what sudo starts.
  const std::vector<std::string> asking = {"-k", "-S", "-p", ""};
  const std::string& line = password->line(shell.host().name);
  outcome = sudo(asking, line);
  if (!outcome.ok()) {
    throw refusal(shell, argv, last_words(outcome) + " (with the password that you gave)");
  }
  return {with_words(with_words({"sudo"}, asking), argv), line};
}

std::string sudoers_line(const std::string& user, const std::string& sha256, const std::vector<std::string>& argv) {
  // The name comes from the node. What is no usual one would be something else to sudo: everybody (ALL), an alias, a
  // group, two rules.
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool usual = std::ranges::any_of(user, is_small) && user[0] != '-' &&
                     user.find_first_not_of(kUserLetters) == std::string::npos;
  std::string line = fmt::format("{} ALL=(root) NOPASSWD: sha256:{}", usual ? user : "YOUR-USER", sha256);
  for (const std::string& word : argv) {
    line += ' ';
    for (const char c : word) {
      if (std::string_view(",:=\\ ").find(c) != std::string_view::npos) line += '\\';
      line += c;
    }
  }
  return line;
}

}  // namespace yoke::fleet
