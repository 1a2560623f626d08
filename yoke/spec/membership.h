// Who belongs to a group of ranks, and where each is reached: what the job hands to its ranks and a communicator is
// built from. A new epoch is a new list; whatever carries an older epoch is stale.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::spec {

// Where a rank listens on one rail.
struct RailEndpoint {
  std::string rail;     // "A", "B"; "local" where the node has no rails
  std::string address;  // "192.168.100.1"
  int port = 0;
  friend bool operator==(const RailEndpoint&, const RailEndpoint&) = default;
};

struct Member {
  std::string node;                     // ranks of one node exchange through memory
  std::vector<RailEndpoint> endpoints;  // in the order of the rails; the same rails for all members
  friend bool operator==(const Member&, const Member&) = default;
};

struct Membership {
  int epoch = 1;
  std::string token;            // hex; a rank that does not know it is a stranger
  std::vector<Member> members;  // by rank
  friend bool operator==(const Membership&, const Membership&) = default;

  int size() const { return static_cast<int>(members.size()); }
};

Document to_json(const RailEndpoint& endpoint);
void from_json(const Document& document, RailEndpoint& endpoint);
Document to_json(const Membership& membership);
void from_json(const Document& document, Membership& membership);  // validates: throws Error(kInvalid)

}  // namespace yoke::spec
