// What passes from this machine to others, tried: pings, connections, and where the kernel would send. Each trial ends
// within some two seconds; they may run at once.
#pragma once
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/spec/survey.h"

namespace yoke::survey {

// Whether the socket's error came as an ICMP message. A machine on whose port nobody listens resets the connection;
// that a port is "unreachable" is said by packet filters only.
bool came_by_icmp(const UniqueFd& fd);

// On the rail itself, whatever the routes say.
void try_path(spec::PathProbe& path);
// As a program does that binds to nothing.
void try_far(spec::RingProbe& far);
// Both without a source address, as where a connection begins, and with the rail's own, as where one is answered.
void ask_routes(spec::PathProbe& path, const spec::Machine& machine);

// The kernel's settings of these interfaces that keep a node of a ring from passing packets on, or from taking those
// that come by another way than the answer would go.
std::vector<std::string> read_ring_settings(const FileTree& files, const std::vector<spec::PathProbe>& paths);

}  // namespace yoke::survey
