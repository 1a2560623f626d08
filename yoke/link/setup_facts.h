// What setup must know of a node before it plans: what it has, and the public halves of its keys. Secrets stay there.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::link {

struct SetupFacts {
  std::string management_interface;       // the one that has the node's address; empty where none has
  std::string ssh_address;                // that ssh came in by; empty where it did not
  std::string ssh_interface;              // the one that has it
  std::optional<std::string> public_key;  // of the user; absent: it will be made
  std::vector<std::string> host_keys;     // of sshd: "ssh-ed25519 AAAA…", without comments
  std::vector<std::string> rdma_devices;  // of the rails, in their order; empty texts where there is none
  std::vector<std::string> rails;         // interfaces of all rails that have a cable
  bool netplan = false;                   // is installed
  bool systemd = false;                   // runs
};

struct SetupQuestion {
  std::string address;                  // the node's, in the cluster file
  std::string ssh_address;              // that ssh came in by, which a name in the cluster file does not tell
  std::vector<std::string> interfaces;  // of its rails
};

SetupFacts find_setup(const SetupQuestion& question);

Document to_json(const SetupQuestion& question);
void from_json(const Document& document, SetupQuestion& question);
Document to_json(const SetupFacts& facts);
void from_json(const Document& document, SetupFacts& facts);

}  // namespace yoke::link
