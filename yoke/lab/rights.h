// What this process may do. Root makes a lab as it is; any other user does so in a user namespace of the lab's own,
// where the user is root and the further ids that sshd needs are lent by /etc/subuid and /etc/subgid. The files of the
// machine belong to nobody there: what a node must write is laid over them (node_root.cc).
#pragma once
#include <sys/types.h>

namespace yoke::lab {

// Root only within a user namespace in which the machine's own root does not exist.
bool in_user_namespace();
// Who we are outside of it.
uid_t outer_user();

// Gives this process what it takes to make namespaces, or throws kPermission with what is missing and how to get it.
// A user's process is in a new user namespace and a new network namespace then. Before any thread is started.
void take_lab_rights();

}  // namespace yoke::lab
