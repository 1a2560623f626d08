// How busy this machine's cores are in a window of time, interrupts included: who is the limit, the link or the cores?
#pragma once
#include <string_view>

namespace yoke::bench {

// Since the machine started, over all cores, in clock ticks.
struct CoreTimes {
  double idle = 0;
  double total = 0;
  int cores = 0;
};
CoreTimes read_core_times();
CoreTimes parse_core_times(std::string_view stat);  // what /proc/stat prints

// From 0 to 1; 0 where nothing is known.
double busy_share(const CoreTimes& before, const CoreTimes& after);

}  // namespace yoke::bench
