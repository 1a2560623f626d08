// What setup must know of a node before it plans: what it has, and the public halves of its keys. Secrets stay there.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke {

struct SetupFacts {
  std::string management_interface;       // the one that has the node's address; empty where none has
  std::string ssh_address;                // that ssh came in by; empty where it did not
  std::string ssh_interface;              // the one that has it
  std::optional<std::string> public_key;  // of the user; absent: it will be made
  std::vector<std::string> host_keys;     // of sshd: "ssh-ed25519 AAAA…", without comments
  std::vector<std::string> rdma_devices;  // of the halves, in their order; empty texts where there is none
  bool netplan = false;                   // is installed
  bool systemd = false;                   // runs
};

struct SetupQuestion {
  std::string address;                  // the node's, in the cluster file
  std::string ssh_address;              // that ssh came in by, which a name in the cluster file does not tell
  std::vector<std::string> interfaces;  // of its halves
};

SetupFacts look_for_setup(const SetupQuestion& question);

Document to_json(const SetupQuestion& question);
SetupQuestion setup_question_from_json(const Document& document);
Document to_json(const SetupFacts& facts);
SetupFacts setup_facts_from_json(const Document& document);

}  // namespace yoke
