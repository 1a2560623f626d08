#include "yoke/link/netplan.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/base/yaml.h"
#include "yoke/link/netplan_match.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {
namespace fs = std::filesystem;
namespace {

using namespace literals;

constexpr int kMinMtu = 1280;
constexpr int kMaxMtu = 9978;

[[noreturn]] void refuse(std::string what, std::string hint) {
  throw Error(ErrorCode::kInvalid, std::move(what), std::move(hint));
}

void check_interfaces(const std::vector<NetplanInterface>& interfaces, int mtu) {
  if (mtu < kMinMtu || mtu > kMaxMtu) {
    refuse(fmt::format("an MTU of {} makes no sense", mtu), fmt::format("{} to {}; 9000 is right", kMinMtu, kMaxMtu));
  }
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const NetplanInterface& a = interfaces[j];
      const NetplanInterface& b = interfaces[i];
      if (a.name == b.name) refuse(fmt::format("the interface {} is there twice", a.name), "one rail, one interface");
      if (overlap(a.address.network(), b.address.network())) {
        refuse(fmt::format("{} ({}) and {} ({}) are in one subnet", a.name, to_string(a.address), b.name,
                           to_string(b.address)),
               "each rail needs a subnet of its own, else all traffic may leave by one rail");
      }
    }
  }
}

// A value or a list as one text: netplan quotes what we do not.
std::string flat(const Document& value) {
  std::string text = value.text;
  for (const Document& item : value.items) text += item.text + " ";
  return text;
}

struct OtherSetting {
  std::string file, value;
};

// Which of the other files gives an interface a key, by its name.
std::optional<OtherSetting> setting_of(const std::vector<NetplanFile>& others, const std::string& interface,
                                       const std::string& key) {
  for (const NetplanFile& other : others) {
    const auto parsed = try_to([&] { return parse_yaml(other.content.text, other.path); });
    const Document* at = parsed ? &*parsed : nullptr;
    for (const std::string& name : {std::string("network"), std::string("ethernets"), interface, key}) {
      at = at ? at->find(name) : nullptr;
    }
    if (at) return OtherSetting{other.path, std::string(trim(flat(*at)))};
  }
  return std::nullopt;
}

// What netplan makes of all files together must be what ours says of its interfaces.
void check_merged(const fs::path& root, const std::string& content, const std::vector<NetplanFile>& others) {
  const Outcome outcome =
      run_or_throw({.argv = {"netplan", "get", "--root-dir", root.native(), "network.ethernets"}, .timeout = 30_s});
  const Document merged = parse_yaml(outcome.out, "netplan get");
  const Document ours = parse_yaml(content, "our netplan file");
  for (const auto& [name, wanted] : ours.find("network")->find("ethernets")->fields) {
    const Document* found = merged.find(name);
    for (const char* key : {"addresses", "mtu", "dhcp4"}) {
      const Document* value = found ? found->find(key) : nullptr;
      if (value && flat(*value) == flat(*wanted.find(key))) continue;
      const auto other = setting_of(others, name, key);
      throw Error(
          ErrorCode::kConflict,
          other ? fmt::format("{} also sets {}: {}: {}", other->file, name, key, printable(other->value, 80))
                : fmt::format("another file in /etc/netplan also sets '{}' of {}", key, name),
          fmt::format("to keep that address: 'yoke link discover -o cluster.yaml --force' (without --new-addresses); "
                      "to replace it: remove {} from {}, then 'yoke link setup' again",
                      name, other ? other->file : "that file"));
    }
  }
}

// Another profile may mean one of our interfaces without naming it.
void check_matches(const std::vector<NetplanFile>& others, const std::string& content) {
  std::vector<NetplanTarget> rails;
  const Document ours = parse_yaml(content, "our netplan file");
  for (const auto& [name, wanted] : ours.find("network")->find("ethernets")->fields) {
    rails.push_back(read_netplan_target(name));
  }
  const auto clash = find_netplan_clash(others, rails);
  if (!clash) return;
  const bool is_managers = clash->id.starts_with("NM-");
  throw Error(
      ErrorCode::kConflict,
      clash->id == clash->interface ? fmt::format(
                                          "{}: '{}' is the name of a rail, but its 'match' means another interface",
                                          clash->file, clash->id)
                                    : fmt::format("{}: '{}' also configures {}, by its 'match'", clash->file,
                                                  printable(clash->id, 80), clash->interface),
      is_managers ? fmt::format("it is a profile of NetworkManager's: 'nmcli connection show' prints its name, "
                                "'nmcli connection delete' removes it; or narrow its 'match' so that it leaves "
                                "{} out",
                                clash->interface)
                  : fmt::format("narrow its 'match' so that it leaves {} out, or remove it; then 'yoke link "
                                "setup' again",
                                clash->interface));
}

}  // namespace

std::string render_netplan(const std::vector<NetplanInterface>& interfaces, int mtu) {
  check_interfaces(interfaces, mtu);
  std::string text =
      "# Written by 'yoke link setup'; 'yoke link undo' takes it back.\n"
      "network:\n"
      "  version: 2\n"
      "  ethernets:\n";
  for (const NetplanInterface& interface : interfaces) {
    text += fmt::format(
        "    {}:\n"
        "      optional: true\n"
        "      dhcp4: false\n"
        "      dhcp6: false\n"
        "      accept-ra: false\n"
        "      link-local: []\n"
        "      mtu: {}\n"
        "      addresses: [{}]\n",
        interface.name, mtu, to_string(interface.address));
    if (!interface.routes.empty()) text += "      routes:\n";
    for (const NetplanRoute& route : interface.routes) {
      text += fmt::format("        - {{ to: {}, via: {} }}\n", route.to, route.via);
    }
  }
  return text;
}

void validate_netplan(const std::string& content, const fs::path& file) {
  const ScratchDir root(kNetplanScratch);
  const fs::path folder = root.path() / "etc/netplan";
  make_folder(folder);
  std::vector<NetplanFile> others;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator("/etc/netplan", failure)) {
    if (entry.path().extension() != ".yaml" || entry.path() == file) continue;
    const std::string text = read_file(entry.path());
    write_file_atomically(folder / entry.path().filename(), text, {.mode = 0600});
    others.push_back({entry.path().native(), Document::string(text)});
  }
  write_file_atomically(folder / file.filename(), content, {.mode = 0600});
  const Outcome outcome = run({.argv = {"netplan", "generate", "--root-dir", root.path().native()}, .timeout = 60_s});
  if (!outcome.ok()) {
    throw Error(ErrorCode::kInvalid, fmt::format("netplan refuses the file: {}", printable(trim(outcome.err), 300)),
                "'netplan generate' on the node shows whether its own files are in order");
  }
  check_merged(root.path(), content, others);
  // Only now: what netplan does not take, it explains better.
  for (NetplanFile& other : others) other.content = parse_yaml(other.content.text, other.path);
  check_matches(others, content);
}

bool netplan_applies() {
  return fs::exists("/run/systemd/system") && is_installed("netplan") && fs::exists(kNetplanFile);
}

}  // namespace yoke::link
