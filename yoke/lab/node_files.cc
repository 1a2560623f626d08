#include "yoke/lab/node_files.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/lab/node.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;
namespace {

constexpr std::string_view kSshdConfig = R"(# Written by yoke lab: keys only, no question ever.
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
MaxStartups 100
MaxSessions 100
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
)";

std::string read_key(const LabLayout& layout, const LabNode& node, const char* file) {
  return read_file(node_folder(layout.name, node.number) / file);
}

std::string hosts_file(const LabLayout& layout) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (const LabNode& node : layout.nodes)
    text += fmt::format("{} {}\n", yoke::to_string(node.management.address), node.name);
  return text;
}

// A host key is known under the node's name and under each of its addresses.
std::string known_hosts(const LabLayout& layout) {
  std::string text;
  for (const LabNode& node : layout.nodes) {
    std::string names = fmt::format("{},{}", node.name, yoke::to_string(node.management.address));
    for (const LabInterface& interface : node.interfaces) {
      if (interface.address) names += "," + yoke::to_string(interface.address->address);
    }
    text += fmt::format("{} {}\n", names, trim(read_key(layout, node, "host_key.pub")));
  }
  return text;
}

void put(const fs::path& file, std::string_view content, mode_t mode = 0644) {
  std::error_code ignored;
  if (fs::is_symlink(file)) fs::remove(file, ignored);  // /etc/resolv.conf and its like lead out of the node
  write_file_atomically(file, content, {.mode = mode});
}

// sshd refuses an account whose password is locked by '!', as Ubuntu's root is; '*' is a password that nobody has.
std::string shadow_file(const fs::path& root) {
  std::string text = "root:*:20000:0:99999:7:::\n";
  const auto there = try_to([&] { return read_file(root / "etc/shadow"); });  // closed to a lab without root
  for (const std::string& line : split(there.value_or(""), '\n')) {
    if (!line.empty() && !line.starts_with("root:")) text += line + "\n";
  }
  return text;
}

// What this machine's root has its shells do at their start (version managers that take half a second and wait for
// locks, greetings) is not the node's: each ssh session would run it.
void put_plain_shell(const fs::path& home) {
  for (const char* file : {".bash_profile", ".bash_login", ".profile", ".zshenv"}) fs::remove(home / file);
  put(home / ".bashrc", "");
}

}  // namespace

void make_keys(const LabLayout& layout) {
  for (const LabNode& node : layout.nodes) {
    for (const std::string key : {"host_key", "user_key"}) {
      const fs::path file = node_folder(layout.name, node.number) / key;
      const std::string comment = key == "host_key" ? node.name : "root@" + node.name;
      run_or_throw({.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file.native()},
                    .timeout = 20_s});
    }
  }
}

void write_node_files(const LabLayout& layout, const LabNode& node, const fs::path& root) {
  put(root / "etc/hostname", node.name + "\n");
  put(root / "etc/hosts", hosts_file(layout));
  put(root / "etc/shadow", shadow_file(root), 0600);
  make_folder(root / "etc/ssh");
  for (const auto& entry : fs::directory_iterator(root / "etc/ssh")) {
    if (entry.path().filename().native().starts_with("ssh_host_")) fs::remove(entry.path());
  }
  put(root / "etc/ssh/ssh_host_ed25519_key", read_key(layout, node, "host_key"), 0600);
  put(root / "etc/ssh/ssh_host_ed25519_key.pub", read_key(layout, node, "host_key.pub"));
  put(root / "etc/ssh/yoke_sshd_config", kSshdConfig);
  put_plain_shell(root / "root");
  const fs::path home = root / "root/.ssh";
  fs::remove_all(home);
  make_folder(home, 0700);
  put(home / "id_ed25519", read_key(layout, node, "user_key"), 0600);
  put(home / "id_ed25519.pub", read_key(layout, node, "user_key.pub"));
  std::string authorized;
  for (const LabNode& other : layout.nodes) authorized += read_key(layout, other, "user_key.pub");
  put(home / "authorized_keys", authorized, 0600);
  put(home / "known_hosts", known_hosts(layout), 0600);
}

}  // namespace yoke::lab
