// What a node says about itself is checked before it goes into other nodes' files: a node that is not trusted must not
// let others in on the others, stand for other hosts, or write into a file that a shell reads.
#pragma once
#include <string>
#include <string_view>

#include "yoke/link/setup_facts.h"

namespace yoke::link {

// "TYPE BASE64" of a line "TYPE BASE64 [comment]": one line, a type that OpenSSH has, without options, and a key that
// is of this type. Throws Error(kInvalid) that names the node and `what` ("public key") otherwise.
std::string checked_key(std::string_view line, const std::string& what, const std::string& node);

// The facts of a node as setup may use them: its user's key must be an Ed25519 key, and gets a comment of ours; the
// names of devices must be plain. Throws Error(kInvalid) that names the node.
SetupFacts checked_facts(SetupFacts facts, const std::string& node);

}  // namespace yoke::link
