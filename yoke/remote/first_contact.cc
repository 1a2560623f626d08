#include "yoke/remote/first_contact.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/process.h"
#include "yoke/base/run_at_terminal.h"
#include "yoke/base/text.h"
#include "yoke/remote/ssh_errors.h"

namespace yoke::remote {
namespace fs = std::filesystem;
using namespace literals;
namespace {

constexpr std::size_t kMaxKeys = 16;

fs::path ssh_folder() {
  const char* home = std::getenv("HOME");
  if (!home || !*home) throw Error(ErrorCode::kInvalid, "HOME is not set, so ssh has no place for keys", "set HOME");
  return fs::path(home) / ".ssh";
}

// As known_hosts names a host: another port than 22 goes with the name.
std::string name_in_known_hosts(const Host& host) {
  return host.port == 0 || host.port == 22 ? host.address : fmt::format("[{}]:{}", host.address, host.port);
}

bool is_key_type(std::string_view word) {
  return word == "ssh-ed25519" || word == "ssh-rsa" || word.starts_with("ecdsa-sha2-nistp");
}

bool is_base64(std::string_view text) {
  return !text.empty() && text.size() < 4096 &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
             std::string_view::npos;
}

std::string fingerprint_of(const std::string& line) {
  const Outcome outcome = run({.argv = {"ssh-keygen", "-lf", "-"}, .input = line + "\n", .timeout = 10_s});
  const std::vector<std::string> words = split(std::string(trim(outcome.out)), ' ');
  return outcome.ok() && words.size() >= 2 && words[1].starts_with("SHA256:") ? words[1] : "";
}

std::string own_public_key() {
  const fs::path key = ssh_folder() / "id_ed25519";
  make_private_folder(ssh_folder());
  if (!fs::exists(key)) {
    run_or_throw({.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key.native()}, .timeout = 20_s});
  }
  return std::string(trim(read_file(key.native() + ".pub")));
}

void trust(const std::vector<HostKey>& keys) {
  if (keys.empty()) return;
  make_private_folder(ssh_folder());
  const fs::path file = ssh_folder() / "known_hosts";
  std::string text = fs::exists(file) ? read_file(file) : "";
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (const HostKey& key : keys) text += key.line + "\n";
  write_file_atomically(file, text, {.mode = 0600});
}

}  // namespace

std::vector<HostKey> parse_host_keys(std::string_view scan, const Host& host) {
  std::vector<HostKey> keys;
  for (const std::string& line : split(std::string(scan), '\n')) {
    const std::vector<std::string> words = split(std::string(trim(line)), ' ');
    if (line.starts_with('#') || words.size() != 3 || !is_key_type(words[1]) || !is_base64(words[2])) continue;
    if (keys.size() == kMaxKeys) break;
    keys.push_back({fmt::format("{} {} {}", name_in_known_hosts(host), words[1], words[2]), words[1], ""});
  }
  return keys;
}

FirstContact inspect_host(const Host& host) {
  FirstContact contact;
  contact.is_known = run({.argv = {"ssh-keygen", "-F", name_in_known_hosts(host)}, .timeout = 10_s}).ok();
  if (contact.is_known) return contact;
  const std::string port = fmt::format("{}", host.port == 0 ? 22 : host.port);
  const Outcome scan =
      run({.argv = {"ssh-keyscan", "-T", "5", "-p", port, "-t", "ed25519,ecdsa,rsa", host.address}, .timeout = 20_s});
  contact.keys = parse_host_keys(scan.out, host);
  for (HostKey& key : contact.keys) key.fingerprint = fingerprint_of(key.line);
  std::erase_if(contact.keys, [](const HostKey& key) { return key.fingerprint.empty(); });
  if (!contact.keys.empty()) return contact;
  throw Error(ErrorCode::kUnavailable, fmt::format("{} shows no host key", describe(host)),
              "is its sshd running, and the address right?");
}

void make_first_contact(const Host& host, const FirstContact& contact) {
  const std::string key = own_public_key();
  trust(contact.keys);
  std::vector<std::string> words = {"ssh",
                                    "-o",
                                    "StrictHostKeyChecking=yes",
                                    "-o",
                                    "NumberOfPasswordPrompts=3",
                                    "-o",
                                    "PreferredAuthentications=publickey,keyboard-interactive,password",
                                    "-o",
                                    "ConnectTimeout=10"};
  if (host.port != 0) words.insert(words.end(), {"-p", fmt::format("{}", host.port)});
  if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
  // One line more, whatever is there: a last line without its end must not swallow ours.
  words.insert(words.end(), {"--", host.address,
                             "umask 077; mkdir -p .ssh && { [ -s .ssh/authorized_keys ] && echo; cat; } >> "
                             ".ssh/authorized_keys"});
  // ssh reads the password from the terminal.
  if (const int status = run_at_terminal({.argv = std::move(words), .input = key + "\n"}); status != 0) {
    throw Error(ErrorCode::kPermission, fmt::format("the key could not be installed on {}", describe(host)),
                "was the password right? Does its sshd allow passwords for this user (PermitRootLogin, "
                "PasswordAuthentication)?");
  }
}

}  // namespace yoke::remote
