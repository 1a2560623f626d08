#include "yoke/probe/system_facts.h"

#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "yoke/base/fields.h"
#include "yoke/probe/nccl_build.h"
#include "yoke/spec/machine_fields.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, SystemFacts& facts) {
  visit.optional("architecture", facts.architecture);
  visit.optional("home", facts.home);
  visit.optional("container", facts.container);
  visit.optional("clock_synchronized", facts.clock_synchronized);
  visit.optional("clock_error", facts.clock_error);
  visit.optional("environment", facts.environment);
  visit.optional("nccl", facts.nccl);
}

Document to_json(const SystemFacts& facts) { return to_document(facts); }
SystemFacts system_from_json(const Document& document) { return from_document<SystemFacts>(document); }

bool is_network_variable(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"NCCL_", "UCX_", "GLOO_", "OMPI_MCA_", "TP_SOCKET_IFNAME"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

SystemFacts read_system() {
  SystemFacts facts;
  utsname names{};
  if (uname(&names) == 0) facts.architecture = names.machine;
  if (const char* home = std::getenv("HOME"); home && *home == '/') facts.home = home;
  if (std::getenv("KUBERNETES_SERVICE_HOST")) facts.container = "kubernetes";
  timex clock{};
  if (const int state = adjtimex(&clock); state >= 0) {
    facts.clock_synchronized = state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
    // Meaningless without anybody who steers it: the kernel then counts up to its limit of 16 s.
    if (*facts.clock_synchronized) facts.clock_error = Seconds{static_cast<double>(clock.maxerror) / 1e6};
  }
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || !is_network_variable(line.substr(0, equals))) continue;
    facts.environment.push_back({.name = std::string(line.substr(0, equals)),
                                 .value = std::string(line.substr(equals + 1)),
                                 .where = "environment"});
  }
  std::sort(facts.environment.begin(), facts.environment.end(),
            [](const NetworkSetting& a, const NetworkSetting& b) { return a.name < b.name; });
  facts.nccl = find_nccl_builds();
  return facts;
}

}  // namespace yoke
