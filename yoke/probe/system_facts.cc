#include "yoke/probe/system_facts.h"

#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "yoke/base/fields.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/probe/kernel_log.h"
#include "yoke/probe/nccl_build.h"

namespace yoke::probe {

template <class Visitor>
void visit_fields(Visitor& visit, AcsControl& acs) {
  visit.required("bridge", acs.bridge);
  visit.required("control", acs.control);
}

template <class Visitor>
void visit_fields(Visitor& visit, SystemFacts& facts) {
  visit.optional("architecture", facts.architecture);
  visit.optional("home", facts.home);
  visit.optional("container", facts.container);
  visit.optional("clock_synchronized", facts.clock_synchronized);
  visit.optional("clock_error", facts.clock_error);
  visit.optional("environment", facts.environment);
  visit.optional("nccl", facts.nccl);
  visit.optional("allocation", facts.allocation);
  visit.optional("fabric_manager", facts.fabric_manager);
  visit.optional("acs", facts.acs);
  visit.optional("xids", facts.xids);
}

Document to_json(const SystemFacts& facts) { return write_fields(facts); }
void from_json(const Document& document, SystemFacts& facts) { read_fields(document, facts); }

bool is_network_variable(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"NCCL_", "UCX_", "GLOO_", "OMPI_MCA_", "TP_SOCKET_IFNAME"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

std::optional<int> parse_acs_control(std::string_view configuration) {
  const auto word = [&](std::size_t at) {
    return static_cast<unsigned char>(configuration[at]) | static_cast<unsigned char>(configuration[at + 1]) << 8U;
  };
  // PCI Express, 7.6.2: extended capabilities begin at 0x100, each with its number (16 bits), version (4) and the place
  // of the next (12). ACS is number 0x0d; its control register is 6 bytes into it.
  constexpr std::size_t kFirst = 0x100, kAcs = 0x0d, kControl = 6;
  std::size_t at = kFirst;
  for (int steps = 0; steps < 64 && at >= kFirst && at + kControl + 2 <= configuration.size(); ++steps) {
    if (word(at) == kAcs) return static_cast<int>(word(at + kControl));
    at = static_cast<std::size_t>(word(at + 2)) >> 4U;
  }
  return std::nullopt;
}

namespace {

std::vector<AcsControl> read_acs() {
  std::vector<AcsControl> bridges;
  const DiskTree files;
  constexpr const char* kFolder = "/sys/bus/pci/devices/";
  for (const std::string& address : files.list(kFolder)) {
    if (!files.read(kFolder + address + "/class").value_or("").starts_with("0x0604")) continue;
    const auto text = try_to([&] { return files.read(kFolder + address + "/config"); });
    const auto control = text && *text ? parse_acs_control(**text) : std::nullopt;
    if (control && *control != 0) bridges.push_back({address, *control});
  }
  return bridges;
}

// "Fabric Manager version is : 580.95.05"
std::optional<std::string> parse_fabric_manager_version(std::string_view text) {
  const std::size_t colon = text.find(" : ");
  if (text.find("version is") == std::string_view::npos || colon == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trim(text.substr(colon + 3));
  const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
  return version.empty() ? std::nullopt : std::optional(std::string(version));
}

spec::FabricManager read_fabric_manager() {
  const DiskTree files;
  spec::FabricManager manager;
  manager.installed = files.exists("/usr/bin/nv-fabricmanager");
  const auto pid = files.read_trimmed("/var/run/nvidia-fabricmanager/nv-fabricmanager.pid");
  const bool is_number = pid && !pid->empty() && pid->find_first_not_of("0123456789") == std::string::npos;
  manager.running = is_number && files.exists("/proc/" + *pid);
  if (!manager.installed) return manager;
  const auto reported = try_to([] {
    return run({.argv = {"/usr/bin/nv-fabricmanager", "--version"}, .timeout = Seconds{2}}).out;
  });
  if (reported) manager.version = parse_fabric_manager_version(*reported);
  return manager;
}

}  // namespace

SystemFacts read_system(NcclSearch search) {
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
            [](const spec::NetworkSetting& a, const spec::NetworkSetting& b) { return a.name < b.name; });
  if (const char* job = std::getenv("SLURM_JOB_ID"); job && *job) {
    facts.allocation = "Slurm job " + printable(job, 20);
  }
  if (search == NcclSearch::kNone) return facts;
  if (search == NcclSearch::kAll) facts.nccl = find_nccl_builds();
  // What only machines with NVIDIA's driver have, or suffer from.
  if (!DiskTree().exists("/proc/driver/nvidia")) return facts;
  facts.fabric_manager = read_fabric_manager();
  facts.acs = read_acs();
  facts.xids = read_xids_here();
  return facts;
}

}  // namespace yoke::probe
