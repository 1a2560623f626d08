#include "yoke/remote/ssh_errors.h"

#include <fmt/format.h>

#include "yoke/base/text.h"
#include "yoke/remote/quote.h"

namespace yoke::remote {
namespace {

// "-p 2222 nvidia@192.168.1.22": to paste behind ssh or ssh-copy-id.
std::string as_arguments(const Host& host) {
  const std::string port = host.port == 0 ? "" : fmt::format("-p {} ", host.port);
  return port + shell_quote(host.user.empty() ? host.address : host.user + "@" + host.address);
}

// As known_hosts has it.
std::string known_name(const Host& host) {
  return host.port == 0 || host.port == 22 ? host.address : fmt::format("[{}]:{}", host.address, host.port);
}

std::string_view last_line(std::string_view log) {
  log = trim(log);
  const std::size_t newline = log.rfind('\n');
  return newline == std::string_view::npos ? log : trim(log.substr(newline + 1));
}

// `{0}` is the host as described, `{1}` as arguments, `{2}` as known_hosts has it.
struct Row {
  std::string_view text;
  ErrorCode code;
  std::string_view message;
  std::string_view hint;
};

// The first that the log holds decides: a changed key comes before the "verification failed" that follows it.
constexpr Row kRows[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", ErrorCode::kPermission,
     "the host key of {0} is not the one that is known: the machine was reinstalled, or somebody intercepts the "
     "connection",
     "if it was reinstalled: ssh-keygen -R '{2}', then ssh {1} once, and compare the fingerprint"},
    {"Host key verification failed", ErrorCode::kPermission, "the host key of {0} is not known yet",
     "run `ssh {1}` once and accept its key after comparing the fingerprint"},
    {"host key is known for", ErrorCode::kPermission, "the host key of {0} is not known yet",
     "run `ssh {1}` once and accept its key after comparing the fingerprint"},
    {"Permission denied (", ErrorCode::kPermission,
     "{0} does not let us in with a key; it wants a password, or another key",
     "install your key there: ssh-copy-id {1} (and ssh-keygen -t ed25519 first, if you have none)"},
    {"Too many authentication failures", ErrorCode::kPermission, "{0} refused after too many keys were tried",
     "name the right key for it in ~/.ssh/config: IdentityFile and IdentitiesOnly yes"},
    {"Could not resolve hostname", ErrorCode::kUnavailable, "the name of {0} does not resolve",
     "write its address instead, or add the name to /etc/hosts"},
    {"Connection refused", ErrorCode::kUnavailable, "{0} refuses ssh connections",
     "is its ssh server running there (sudo systemctl start ssh), and on this port?"},
    {"No route to host", ErrorCode::kUnavailable, "{0} cannot be reached",
     "is it on, and its cable plugged in? Try ping"},
    {"Network is unreachable", ErrorCode::kUnavailable, "{0} cannot be reached: there is no route to its network",
     "has this machine an address in that network? See ip route"},
    {"timed out", ErrorCode::kTimeout, "{0} did not answer ssh in time",
     "is it on and not overloaded, and does a firewall drop the packets? Try ping"},
    {"not responding", ErrorCode::kUnavailable, "the connection to {0} was lost: it does not answer any more",
     "is it still on, and its cable plugged in?"},
    {"no matching ", ErrorCode::kUnsupported, "{0} and this machine have no ssh algorithm in common",
     "update the older ssh of the two"},
    {"Bad configuration option", ErrorCode::kInvalid, "the ssh configuration is not valid", "see ~/.ssh/config"},
    {"Bad owner or permissions", ErrorCode::kInvalid, "ssh does not trust its configuration file",
     "chmod 600 ~/.ssh/config, and make it yours"},
};

}  // namespace

std::string describe(const Host& host) {
  if (host.name.empty() || host.name == host.address) return printable(host.address);
  return fmt::format("{} ({})", printable(host.name), printable(host.address));
}

Error ssh_error(const Host& host, std::string_view log) {
  const std::string described = describe(host);
  for (const Row& row : kRows) {
    if (log.find(row.text) == std::string_view::npos) continue;
    const auto fill = [&](std::string_view text) {
      return fmt::format(fmt::runtime(text), described, as_arguments(host), known_name(host));
    };
    return Error(row.code, fill(row.message), fill(row.hint));
  }
  const std::string said = printable(last_line(log));
  return Error(ErrorCode::kUnavailable,
               said.empty() ? fmt::format("the connection to {} was lost", described)
                            : fmt::format("ssh to {} failed: {}", described, said),
               fmt::format("try it by hand: ssh {}", as_arguments(host)));
}

}  // namespace yoke::remote
