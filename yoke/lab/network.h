// The network of a lab: a veth pair for each half of each cable, bridges for management and switches, shaped by tc.
// The host's own network is never touched: everything lies in the namespaces that the holder holds.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/lab/layout.h"

namespace yoke::lab {

// Runs the function on a thread of its own inside a network namespace; programs that it starts run there too.
void in_network(const UniqueFd& network, const std::function<void()>& function);

// One command per line, as for `ip -batch` and `tc -batch`; an Error names the line that failed.
void run_ip(const std::vector<std::string>& lines);
void run_tc(const std::vector<std::string>& lines);

// `tc` words that shape an interface to a rate.
std::string shape_line(std::string_view interface, BitsPerSecond rate);

// Makes all links and sets up all nodes; the holder is running. Returns what this machine could not give, a line each.
std::vector<std::string> build_network(const LabLayout& layout);

// Returns when every interface that has a carrier also carries packets: the kernel starts its queue up to a second
// after the carrier came, and drops what is sent before.
void wait_for_links(const LabLayout& layout, Deadline deadline);

}  // namespace yoke::lab
