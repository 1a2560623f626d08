// One change of a node, as data: what the head plans, the agent does, the journal keeps. How each kind is looked at,
// done, verified and undone is in step_actions.h.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::link {

enum class StepKind {
  kFile,       // a file of ours, whole
  kNetplan,    // the same, validated by netplan before it is written
  kLines,      // lines that a file of the user's must hold
  kKeyPair,    // an ssh key pair of the user's
  kSetting,    // a kernel setting (sysctl)
  kInterface,  // address, MTU and state of an interface
  kRoute,
};
constexpr auto enum_names(StepKind) {
  return std::array{std::pair{"file", StepKind::kFile},       std::pair{"netplan", StepKind::kNetplan},
                    std::pair{"lines", StepKind::kLines},     std::pair{"key-pair", StepKind::kKeyPair},
                    std::pair{"setting", StepKind::kSetting}, std::pair{"interface", StepKind::kInterface},
                    std::pair{"route", StepKind::kRoute}};
}

struct Step {
  StepKind kind = StepKind::kFile;
  std::string description;  // for people: "address 192.168.100.1/24 and MTU 9000 on enp1s0f0np0"
  // Files and key pairs; "~/" is the home of the user that ssh logged in. A setting's name ("net.ipv4.ip_forward").
  std::string path;
  std::string content;             // of a file; a setting's value
  std::vector<std::string> lines;  // of kLines
  int mode = 0644;
  std::string interface;
  std::string address;  // of an interface with prefix length; of a route its destination
  int mtu = 0;
  std::string via;  // of a route
  friend bool operator==(const Step&, const Step&) = default;
};

Document to_json(const Step& step);
void from_json(const Document& document, Step& step);

}  // namespace yoke::link
