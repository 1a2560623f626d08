#include "yoke/spec/membership.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/spec/membership_fields.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, Member& member) {
  visit.required("node", member.node);
  visit.optional("endpoints", member.endpoints);
}

template <class Visitor>
void visit_fields(Visitor& visit, Membership& membership) {
  visit.required("epoch", membership.epoch);
  visit.required("token", membership.token);
  visit.required("members", membership.members);
}

Document to_json(const Membership& membership) { return to_document(membership); }

Membership membership_from_json(const Document& document) {
  Membership membership = from_document<Membership>(document);
  const auto refuse = [](std::string what) { throw Error(ErrorCode::kInvalid, "membership: " + std::move(what)); };
  if (membership.epoch < 1) refuse(fmt::format("epoch {} is below 1", membership.epoch));
  if (membership.members.empty()) refuse("there are no members");
  const std::vector<HalfEndpoint>& first = membership.members.front().endpoints;
  for (const Member& member : membership.members) {
    if (member.endpoints.size() != first.size()) refuse(fmt::format("{} has another number of halves", member.node));
    for (std::size_t i = 0; i < first.size(); ++i) {
      const HalfEndpoint& endpoint = member.endpoints[i];
      if (endpoint.half != first[i].half) refuse(fmt::format("{} names its halves otherwise", member.node));
      if (endpoint.port < 1 || endpoint.port > 65535) refuse(fmt::format("{}: port {}", member.node, endpoint.port));
    }
  }
  return membership;
}

}  // namespace yoke
