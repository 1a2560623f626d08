#include "yoke/lab/plain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/hash.h"
#include "yoke/base/log.h"
#include "yoke/base/result.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/lab/holder.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;
namespace {

constexpr int kFirstHighPort = 2277;
constexpr int kHighPorts = 100;

Ipv4Prefix loopback(int second, int node) {
  return {{(127U << 24) | (static_cast<std::uint32_t>(second) << 16) | static_cast<std::uint32_t>(node)}, 24};
}

std::vector<std::string> addresses_of(const LabNode& node) {
  std::vector<std::string> addresses = {yoke::to_string(node.management.address)};
  for (const LabInterface& interface : node.interfaces)
    addresses.push_back(yoke::to_string(interface.address->address));
  return addresses;
}

bool is_free(const LabLayout& layout, int port) {
  for (const LabNode& node : layout.nodes) {
    for (const std::string& address : addresses_of(node)) {
      if (!try_to([&] { listen_tcp({address, static_cast<std::uint16_t>(port)}); })) return false;
    }
  }
  return true;
}

int choose_port(const LabLayout& layout) {
  if (is_free(layout, 22)) return 22;
  for (int port = kFirstHighPort; port < kFirstHighPort + kHighPorts; ++port) {
    if (is_free(layout, port)) return port;
  }
  throw Error(ErrorCode::kConflict,
              fmt::format("no port of {} to {} is free at 127.77.0.1", kFirstHighPort, kFirstHighPort + kHighPorts - 1),
              "are there other plain labs? 'yoke lab status' lists yours");
}

fs::path token_file(const std::string& lab, int node) { return node_folder(lab, node) / "token"; }

std::string own_name() {
  const passwd* entry = getpwuid(geteuid());
  if (!entry) {
    throw Error(ErrorCode::kNotFound, fmt::format("user {} has no name, without which sshd lets nobody in", geteuid()),
                "give it a line in /etc/passwd");
  }
  return entry->pw_name;
}

std::string sshd_config(const LabLayout& layout, const LabNode& node, const fs::path& folder) {
  std::string text = fmt::format("# Written by yoke lab: keys only, no question ever.\nPort {}\n", layout.ssh_port);
  for (const std::string& address : addresses_of(node)) text += fmt::format("ListenAddress {}\n", address);
  // sshd takes only the first line of SetEnv.
  std::string environment;
  for (const auto& [name, value] : plain_environment(layout.name, node))
    environment += fmt::format(" \"{}={}\"", name, value);
  text += fmt::format("SetEnv{}\n", environment);
  text += fmt::format("HostKey {0}/host_key\nAuthorizedKeysFile {0}/authorized_keys\nAllowUsers {1}\n", folder.native(),
                      own_name());
  // The lab's folder may lie below /tmp, which strict modes refuse; it is closed to others all the same.
  text +=
      "StrictModes no\nPidFile none\nPermitRootLogin prohibit-password\nPubkeyAuthentication yes\n"
      "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nUseDNS no\nPrintMotd no\n"
      "MaxStartups 100\nMaxSessions 100\nAcceptEnv LANG LC_*\nSubsystem sftp internal-sftp\n";
  return text;
}

std::string ssh_config(const LabLayout& layout, const fs::path& folder) {
  std::string text;
  for (const LabNode& node : layout.nodes)
    text += fmt::format("Host {}\n  HostName {}\n", node.name, yoke::to_string(node.management.address));
  text += fmt::format("Host *\n  Port {}\n  User {}\n  IdentityFile {}/user_key\n", layout.ssh_port, own_name(),
                      folder.native());
  text += fmt::format("  UserKnownHostsFile {}/known_hosts\n", folder.native());
  return text + "  GlobalKnownHostsFile /dev/null\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n";
}

std::string plain_known_hosts(const LabLayout& layout) {
  std::string text;
  for (const LabNode& node : layout.nodes) {
    std::vector<std::string> names = addresses_of(node);
    if (layout.ssh_port != 22) {
      for (std::string& name : names) name = fmt::format("[{}]:{}", name, layout.ssh_port);
    }
    const std::string key = read_file(node_folder(layout.name, node.number) / "host_key.pub");
    text += fmt::format("{} {}\n", fmt::join(names, ","), trim(key));
  }
  return text;
}

// sshd as root insists on this folder, which the service makes where there is one. Where it was us, it goes with the
// lab.
constexpr const char* kSeparationFolder = "/run/sshd";
constexpr const char* kSeparationMark = "made-run-sshd";

void make_separation_folder(const fs::path& folder) {
  if (geteuid() != 0 || fs::is_directory(kSeparationFolder)) return;
  write_file_atomically(folder / kSeparationMark, "");
  make_folder(kSeparationFolder);
}

pid_t start_sshd(const fs::path& folder) {
  return fork_call([&] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string config = folder / "sshd_config";
    for (const char* program : {"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"})
      execl(program, program, "-D", "-e", "-f", config.c_str(), nullptr);
    return 127;
  });
}

void wait_for_sshd(const LabLayout& layout, const LabNode& node, pid_t sshd) {
  const Deadline deadline = Deadline::after(10_s);
  const Endpoint endpoint{yoke::to_string(node.management.address), static_cast<std::uint16_t>(layout.ssh_port)};
  while (!try_to([&] { connect_tcp(endpoint, {}, Deadline::after(1_s)); })) {
    int status = 0;
    if (waitpid(sshd, &status, WNOHANG) == sshd)
      throw Error(ErrorCode::kUnsupported, "sshd does not start: see its log");
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, "sshd does not answer");
    real_clock().sleep(5_ms);
  }
}

}  // namespace

std::string plain_token(const std::string& lab, int node) {
  return DiskTree().read(token_file(lab, node).native()).value_or("");
}

LabLayout lay_out_plain_lab(const LabOptions& options) {
  LabLayout layout = lay_out_lab(options);
  if (layout.topology == spec::Topology::kMesh) {
    throw Error(ErrorCode::kUsage,
                "the nodes of a plain lab cannot be joined as a mesh: they share two loopback networks",
                "leave --topology or --plain out");
  }
  layout.plain = true;
  layout.hardware = "none";
  layout.management_interface = "lo";
  layout.cables.clear();
  layout.subnets = {loopback(100, 0), loopback(101, 0)};
  for (LabNode& node : layout.nodes) {
    node.management = loopback(77, node.number);
    node.routes.clear();
    node.interfaces = {{.name = "lo", .rail = "A", .address = loopback(100, node.number)},
                       {.name = "lo", .rail = "B", .address = loopback(101, node.number)}};
  }
  layout.ssh_port = choose_port(layout);
  return layout;
}

std::vector<std::string> missing_in_plain_labs() {
  return {"network: the nodes share this machine's, at loopback addresses; no rate is shaped",
          "file system: the nodes share this machine's",
          "host names: the nodes share this machine's; HOSTNAME and YOKE_LAB_NODE differ",
          "processes: the nodes see each other's",
          "memory limit: a node may use all there is",
          "hardware tree: the nodes show this machine's hardware",
          "faults: only power-off and power-on"};
}

void write_plain_files(const LabLayout& layout) {
  for (const LabNode& node : layout.nodes)
    write_file_atomically(token_file(layout.name, node.number), random_token_hex(16), {.mode = 0600});
  std::string authorized;
  for (const LabNode& node : layout.nodes)
    authorized += read_file(node_folder(layout.name, node.number) / "user_key.pub");
  for (const LabNode& node : layout.nodes) {
    const fs::path folder = node_folder(layout.name, node.number);
    write_file_atomically(folder / "authorized_keys", authorized, {.mode = 0600});
    write_file_atomically(folder / "known_hosts", plain_known_hosts(layout), {.mode = 0600});
    write_file_atomically(folder / "sshd_config", sshd_config(layout, node, folder), {.mode = 0600});
    write_file_atomically(folder / "ssh_config", ssh_config(layout, folder), {.mode = 0600});
    make_folder(folder / "bin");
    write_file_atomically(folder / "bin/ssh",
                          fmt::format("#!/bin/sh\nexec /usr/bin/ssh -F '{}/ssh_config' \"$@\"\n", folder.native()),
                          {.mode = 0755});
  }
}

int run_plain_node(const std::string& lab, int number) {
  try {
    const LabLayout layout = load_layout(lab);
    const LabNode& node = layout.nodes.at(static_cast<std::size_t>(number - 1));
    record_part(lab, number);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // what sshd's sessions leave running stays below us, where it is found
    for (const auto& [name, value] : plain_environment(lab, node)) setenv(name.c_str(), value.c_str(), 1);
    make_separation_folder(node_folder(lab, number));
    const pid_t sshd = start_sshd(node_folder(lab, number));
    wait_for_sshd(layout, node, sshd);
    report_ready();
    for (;;) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, 0);
      if (ended == sshd || (ended < 0 && errno != EINTR)) return 1;
    }
  } catch (const std::exception& failure) {
    log(LogLevel::kError, "{}", failure.what());
    report_failure(failure);
    return 1;
  }
}

void remove_plain_traces(const std::string& lab) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(lab_folder(lab), ignored)) {
    if (fs::exists(entry.path() / kSeparationMark, ignored)) rmdir(kSeparationFolder);
  }
}

std::vector<std::pair<std::string, std::string>> plain_environment(const std::string& lab, const LabNode& node) {
  const std::string folder = node_folder(lab, node.number);
  return {{kPlainFolderVariable, folder},
          {kPlainNodeVariable, node.name},
          {kPlainTokenVariable, plain_token(lab, node.number)},
          {"HOSTNAME", node.name},
          {"PATH", folder + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}};
}

}  // namespace yoke::lab
