// Where a rank of somebody else's launcher listens for the data of the others: launchers do not say.
//
// YOKE_ADDRESS has the first word, then the cluster file's rails of this node, then what is known of the way to the
// others. An address picked from a list of interfaces may be a bridge of Docker or the Wi-Fi, so that comes last.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/ip.h"
#include "yoke/comm/direct/direct.h"
#include "yoke/job/rank_place.h"
#include "yoke/spec/cluster.h"

namespace yoke::rank {

std::vector<Ipv4> own_addresses();
bool is_loopback(std::string_view address);  // 127.x.x.x

// The source address of what leaves for `destination` by the routes of now; nothing where there is no way. Sends
// nothing.
std::optional<std::string> source_address_towards(const std::string& destination);
// That of the default route, else the first of an interface that is no loopback; nothing where there is none.
std::optional<std::string> default_address();

// `towards_others` is the address by which this machine reaches the others, as far as is known; may be empty. Throws
// Error(kInvalid) where YOKE_ADDRESS is no address.
comm::DirectListener::Rails rails_here(const job::Environment& environment, const std::optional<spec::Cluster>& cluster,
                                       const std::string& towards_others);

}  // namespace yoke::rank
