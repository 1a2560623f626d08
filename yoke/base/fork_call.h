// Runs a function in a process of its own, without another program: for what changes that process alone (namespaces,
// its root) or must outlive this one. In a program with one thread only, unless the function calls only what a signal
// handler may; other programs are started by process.h.
#pragma once
#include <sys/types.h>

#include <functional>

namespace yoke {

// Returns the child. There the function's result is the exit status; nothing that runs at a usual exit does. An
// exception is reported on the standard error stream and is exit status 1.
pid_t fork_call(const std::function<int()>& function);

// What waitpid() tells of a child of ours, once it has ended; signals do not end the wait.
int wait_for_child(pid_t child);
// The same; `look` is called after each signal and at least every 0.1 s, as a signal that comes just before a wait does
// not interrupt it: for those who pass signals on.
int wait_for_child(pid_t child, const std::function<void()>& look);

inline int run_forked(const std::function<int()>& function) { return wait_for_child(fork_call(function)); }

}  // namespace yoke
