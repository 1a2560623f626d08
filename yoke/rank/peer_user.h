// Whose a TCP connection within this machine is, as the kernel's table of connections says (/proc/net/tcp): a Unix
// socket has SO_PEERCRED for that, TCP has not.
#pragma once
#include <string_view>

#include "yoke/base/socket.h"

namespace yoke::rank {

// Whether the other end belongs to a process of our user on this machine, in our network namespace. False for ends on
// other machines, and for one that its program has not accepted yet.
bool is_of_this_user(const Socket& socket);

// The user of the established connection from `local` to `remote` in the table's text; -1 where it is not there.
long user_of_connection(std::string_view table, const Endpoint& local, const Endpoint& remote);

}  // namespace yoke::rank
