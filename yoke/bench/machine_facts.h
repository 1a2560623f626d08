// The few facts of a machine that a measurement is worthless without: its name, its processor, how many of its cores
// we may use, and how large its caches are.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/base/units.h"

namespace yoke::bench {

struct MachineFacts {
  std::string host;
  std::string processor;  // "AMD EPYC 9B14", or what the kernel says of it
  Bytes last_cache;       // the largest cache of one core's view; 0: not known
};
MachineFacts facts_of_this_machine(const FileTree& tree);

std::vector<int> usable_cores();  // those that the scheduler may give us, ascending

}  // namespace yoke::bench
