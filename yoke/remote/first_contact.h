// The first login to a machine from the box: it knows no key of ours, and we do not know its host key. The host key is
// scanned and shown with its fingerprint, for a person to compare; then ssh itself asks for the password, once, and our
// public key is added over there. Nothing is trusted that was not shown.
//
//   const FirstContact contact = inspect_host(host);                 // nothing is changed
//   if (agreed(contact.keys)) make_first_contact(host, contact);     // ssh asks at the terminal
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/remote/host.h"

namespace yoke::remote {

struct HostKey {
  std::string line;         // as in known_hosts: "192.168.1.22 ssh-ed25519 AAAA…"
  std::string type;         // "ssh-ed25519"
  std::string fingerprint;  // "SHA256:…"
};

struct FirstContact {
  bool is_known = false;      // known_hosts has a key of this host: ssh compares it
  std::vector<HostKey> keys;  // what it shows now; empty where it is known
};

// What `ssh-keyscan` prints, without its comments and without lines that are none of these hosts' keys. The names are
// not taken from there: the line is made for the host that was asked.
std::vector<HostKey> parse_host_keys(std::string_view scan, const Host& host);

// Throws kUnavailable where the machine does not answer.
FirstContact inspect_host(const Host& host);

// Writes the keys to known_hosts, makes a key pair where the user has none, and adds its public rail over there. ssh
// asks for the password at this terminal. Throws kPermission where it was wrong.
void make_first_contact(const Host& host, const FirstContact& contact);

}  // namespace yoke::remote
