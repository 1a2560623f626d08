// What a cluster must satisfy beyond the types of its fields. One rule per function, in the order a person would fix.
#pragma once
#include "yoke/base/document.h"
#include "yoke/spec/cluster.h"

namespace yoke::spec {

// `document` is what the cluster was read from: errors name its lines.
void check_cluster_rules(const Cluster& cluster, const Document& document);

// A name that may stand in a path, a host name and a shell word: letters, digits, '-', '_' and '.', up to 63 of them,
// a letter or digit first. Also for labs.
bool is_plain_name(std::string_view name);

// A name of an interface or RDMA device that may stand in a file that a shell reads: letters, digits, '_', '.', '@' and
// '-', which does not come first. The kernel allows more.
bool is_device_name(std::string_view name, std::size_t size_max);
inline constexpr std::size_t kMaxInterfaceName = 15;  // IFNAMSIZ - 1

}  // namespace yoke::spec
