#include "yoke/link/setup_facts.h"

#include <algorithm>
#include <filesystem>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/link/cabled_rails.h"
#include "yoke/link/discover_node.h"
#include "yoke/link/file_state.h"
#include "yoke/link/interfaces.h"
#include "yoke/link/rdma_port.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {
namespace fs = std::filesystem;

template <class Visitor>
void visit_fields(Visitor& visit, SetupFacts& facts) {
  visit.required("management_interface", facts.management_interface);
  visit.optional("ssh_address", facts.ssh_address);
  visit.optional("ssh_interface", facts.ssh_interface);
  visit.optional("public_key", facts.public_key);
  visit.optional("host_keys", facts.host_keys);
  visit.optional("rdma_devices", facts.rdma_devices);
  visit.optional("rails", facts.rails);
  visit.required("netplan", facts.netplan);
  visit.required("systemd", facts.systemd);
}

template <class Visitor>
void visit_fields(Visitor& visit, SetupQuestion& question) {
  visit.required("address", question.address);
  visit.optional("ssh_address", question.ssh_address);
  visit.optional("interfaces", question.interfaces);
}

namespace {

// "type key", without the comment, which names a user and a host.
std::string key_of(const std::string& line) {
  const std::vector<std::string> words = split(trim(line), ' ');
  return words.size() < 2 ? "" : words[0] + " " + words[1];
}

// Empty where no interface has it: a host's name, or an address of something in between.
std::string interface_with(const std::string& wanted) {
  const auto has_it = [&](const std::vector<std::string>& addresses) {
    return std::any_of(addresses.begin(), addresses.end(),
                       [&](const std::string& address) { return address.substr(0, address.find('/')) == wanted; });
  };
  for (const LinkInterface& interface : read_link_interfaces()) {
    if (has_it(interface.ipv4) || has_it(interface.ipv6)) return interface.name;
  }
  return "";
}

}  // namespace

SetupFacts find_setup(const SetupQuestion& question) {
  SetupFacts facts{.management_interface = interface_with(question.address),
                   .ssh_address = question.ssh_address,
                   .ssh_interface = interface_with(question.ssh_address),
                   .public_key = {},
                   .host_keys = {},
                   .rdma_devices = {},
                   .rails = {},
                   .netplan = is_installed("netplan"),
                   .systemd = fs::exists("/run/systemd/system")};
  const fs::path key = login_user().home / ".ssh/id_ed25519.pub";
  if (fs::exists(key)) facts.public_key = std::string(trim(read_if_there(key, login_user().owner)));
  for (const char* kind : {"ed25519", "ecdsa", "rsa"}) {
    const fs::path file = fs::path("/etc/ssh") / ("ssh_host_" + std::string(kind) + "_key.pub");
    if (fs::exists(file)) facts.host_keys.push_back(key_of(read_file(file)));
  }
  const DiskTree tree;
  for (const std::string& interface : question.interfaces) {
    const auto port = find_rdma_port(tree, interface, {});
    facts.rdma_devices.push_back(port ? port->device : "");
  }
  for (CabledRail& rail : cabled_rails(inspect_interfaces({}))) facts.rails.push_back(std::move(rail.interface));
  return facts;
}

Document to_json(const SetupQuestion& question) { return write_fields(question); }
void from_json(const Document& document, SetupQuestion& question) { read_fields(document, question); }
Document to_json(const SetupFacts& facts) { return write_fields(facts); }
void from_json(const Document& document, SetupFacts& facts) { read_fields(document, facts); }

}  // namespace yoke::link
