// What a machine's packet filter does, as far as a check wants to know it: whether it drops anything at all, and
// whether what a node of a ring must pass on gets through. Pure but for read_packet_filter().
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/survey.h"

namespace yoke::survey {

// "-P FORWARD DROP" and the rules behind it, as `iptables -S` prints them: the policy, and whether a rule lets
// everything, or all that comes or goes by one of these interfaces, pass, or some of that.
void read_forward_rules(std::string_view rules, const std::vector<std::string>& interfaces, spec::SurveyedNode& node);

// Of what `nft -j list ruleset` prints (libnftables-json(5)): whether any rule, no matter who made it, drops or
// rejects.
bool has_dropping_rule(const Document& ruleset);

// What drops all that is forwarded, or all that comes or goes by one of these interfaces.
struct ForwardDrop {
  std::string where;        // "chain FORWARD of table ip filter: policy drop"
  bool exceptions = false;  // rules with other conditions come before, and may let all pass that matters
};
// Rules with other conditions that drop are left out: they may, or not.
std::optional<ForwardDrop> find_forward_drop(const Document& ruleset, const std::vector<std::string>& interfaces);

// Fills in what of this machine's filter can be read: as root, or by sudo where that asks nothing. What is forwarded is
// read where node.forward_policy asks for it. iptables is asked only where there is no nft: it shows the same rules.
void read_packet_filter(spec::SurveyedNode& node);

}  // namespace yoke::survey
