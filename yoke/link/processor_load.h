// How busy this machine's processors are in a window of time, so that a rate that was measured meanwhile can be
// evaluated fairly: what other programs took, what the host of a virtual machine took (steal), and how long our cgroup
// was held back.
//
//   const ProcessorTimes before = read_processor_times();
//   … the window …
//   const ProcessorLoad load = load_between(before, read_processor_times());
#pragma once
#include <string>
#include <string_view>

#include "yoke/base/clock.h"
#include "yoke/base/units.h"

namespace yoke::link {

// Since the machine started.
struct ProcessorTimes {
  Instant at;
  Seconds busy;       // all programs together; interrupts are not among them, as traffic makes those
  Seconds stolen;     // by the host
  Seconds throttled;  // of our cgroup
  int cores = 1;
  std::string machine;  // of one boot: nodes of a lab have the same
};
ProcessorTimes read_processor_times();
// What /proc/stat prints, into busy, stolen and cores. Anything else leaves them as they are.
void parse_processor_times(std::string_view stat, ProcessorTimes& times);

struct ProcessorLoad {
  double busy = 0;       // cores in use by programs, our own included
  double stolen = 0;     // cores
  double throttled = 0;  // share of the time
  int cores = 1;
  std::string machine = {};
};
ProcessorLoad load_between(const ProcessorTimes& before, const ProcessorTimes& after);

// The share of the processors that we could not have, while our programs there used `own` cores.
double taken_share(const ProcessorLoad& load, double own);

}  // namespace yoke::link
