#include <array>

#include "yoke/probe/collectors.h"

namespace yoke::probe {

void collect_time(const Sources& sources, spec::Machine& machine) {
  struct Daemon {
    const char* name;
    const char* while_it_runs;
  };
  constexpr std::array kDaemons = {Daemon{"chrony", "/run/chrony/chronyd.pid"},
                                   Daemon{"systemd-timesyncd", "/run/systemd/timesync"},
                                   Daemon{"ntpsec", "/run/ntpd.pid"}, Daemon{"ptp4l", "/run/ptp4l"}};
  machine.time.synchronized = sources.system.clock_synchronized;
  machine.time.error = sources.system.clock_error;
  for (const Daemon& daemon : kDaemons) {
    if (sources.files->exists(daemon.while_it_runs)) machine.time.daemons.emplace_back(daemon.name);
  }
}

}  // namespace yoke::probe
