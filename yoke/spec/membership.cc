#include "yoke/spec/membership.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"

namespace yoke::spec {

template <class Visitor>
void visit_fields(Visitor& visit, RailEndpoint& endpoint) {
  visit.required("rail", endpoint.rail);
  visit.required("address", endpoint.address);
  visit.required("port", endpoint.port);
}

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

Document to_json(const RailEndpoint& endpoint) { return write_fields(endpoint); }
void from_json(const Document& document, RailEndpoint& endpoint) { read_fields(document, endpoint); }
Document to_json(const Membership& membership) { return write_fields(membership); }

void from_json(const Document& document, Membership& membership) {
  read_fields(document, membership);
  const auto refuse = [](std::string what) { throw Error(ErrorCode::kInvalid, "membership: " + std::move(what)); };
  if (membership.epoch < 1) refuse(fmt::format("epoch {} is below 1", membership.epoch));
  if (membership.members.empty()) refuse("there are no members");
  const std::vector<RailEndpoint>& first = membership.members.front().endpoints;
  for (const Member& member : membership.members) {
    if (member.endpoints.size() != first.size()) refuse(fmt::format("{} has another number of rails", member.node));
    for (std::size_t i = 0; i < first.size(); ++i) {
      const RailEndpoint& endpoint = member.endpoints[i];
      if (endpoint.rail != first[i].rail) refuse(fmt::format("{} names its rails otherwise", member.node));
      if (endpoint.port < 1 || endpoint.port > 65535) refuse(fmt::format("{}: port {}", member.node, endpoint.port));
    }
  }
}

}  // namespace yoke::spec
