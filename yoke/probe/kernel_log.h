// What the kernel log tells of GPUs: the driver reports each error of one as a line with a number (Xid).
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

#include "yoke/spec/machine.h"

namespace yoke::probe {

// One entry for each GPU and number, with the last line of them. Reads dmesg's form, journalctl's and kern.log's: what
// stands before "NVRM: Xid" does not matter.
std::vector<spec::XidLine> parse_xids(std::string_view log);

// Of a file such as /var/log/kern.log, which can be of any size: its last 8 MiB, and of these what came after the last
// start of the machine. Nothing where it cannot be read.
std::vector<spec::XidLine> read_xids_of(const std::filesystem::path& file);

// Of this machine since it started: the kernel's ring buffer, or where we may not read it the end of /var/log/kern.log.
// Nothing where we may read neither.
std::vector<spec::XidLine> read_xids_here();

}  // namespace yoke::probe
