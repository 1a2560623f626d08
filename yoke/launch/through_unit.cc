// Units of systemd: the script of a node, started on boot after the link.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

std::string unit_text(Through through, const LaunchPlan& plan, std::size_t node, const std::string& script,
                      Bytes limit) {
  const LaunchNode& here = plan.nodes[node];
  std::string devices;
  for (const spec::FabricPin& pin : here.pins.set) {
    if (pin.name == "GLOO_SOCKET_IFNAME") {
      std::string name = pin.value;
      // systemd escapes '-' in the name of a device unit.
      for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 4) name.replace(at, 1, "\\x2d");
      devices += fmt::format(" sys-subsystem-net-devices-{}.device", name);
    }
  }
  // The client that the unit starts may be killed without its container: it goes before a start and after an end.
  std::string removes;
  if (through == Through::kDocker) {
    devices += " docker.service";
    const std::string line =
        fmt::format("/bin/bash -c 'docker rm --force {} >/dev/null 2>&1 || true'", container_name(plan));
    removes = fmt::format("ExecStartPre={}\nExecStopPost={}\n", line, line);
    limit = Bytes{0};  // it would hold the client only
  }
  return fmt::format(
      "# {} on {}, written by 'yoke launch {} --unit'.\n"
      "[Unit]\nDescription={} (started by yoke)\n"
      "Wants=network-online.target{}\nAfter=network-online.target{}\n"
      "StartLimitIntervalSec=900\nStartLimitBurst=4\n\n"
      "[Service]\nType=exec\nExecStartPre=/bin/bash {} --wait-for-link\n{}ExecStart=/bin/bash {}\n"
      "EnvironmentFile=-/etc/yoke/launch/secrets.env\n"
      "Restart=on-failure\nRestartSec=30\nTimeoutStartSec=30min\nTimeoutStopSec=60\nKillMode=control-group\n"
      "LimitMEMLOCK=infinity\nLimitNOFILE=1048576\nOOMScoreAdjust=500\nOOMPolicy=stop\n{}\n"
      "[Install]\nWantedBy=multi-user.target\n",
      plan.engine.title, here.name, plan.engine.name, plan.engine.title, devices, devices, script, removes, script,
      limit.value > 0
          ? fmt::format("# Host memory only: a GB10 does not charge CUDA's memory to a control group.\nMemoryMax={}\n",
                        limit.value)
          : "");
}

// Before the engine: the address is there later than the interface.
std::string link_wait_text(const std::string& address) {
  return fmt::format(
      "if [ \"${{1:-}}\" = --wait-for-link ]; then\n"
      "  for _ in $(seq 120); do\n"
      "    if ip -o -4 address show | grep -qF ' {}/'; then exit 0; fi\n"
      "    sleep 1\n"
      "  done\n"
      "  echo 'the address {} did not come up in 120 s' >&2\n"
      "  exit 1\n"
      "fi\n",
      address, address);
}

}  // namespace

std::vector<RenderedFile> render_units(Through through, const LaunchPlan& plan, const ThroughOptions& options) {
  if (through == Through::kSlurm || through == Through::kKubernetes) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--unit is for machines that boot: {} starts and restarts by itself",
                            through == Through::kSlurm ? "Slurm" : "Kubernetes"),
                "leave out --unit, or start it by ssh, docker or apptainer");
  }
  std::vector<RenderedFile> files;
  const std::string name = container_name(plan);
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    if (plan.of_node(node).empty()) continue;
    const std::string script = fmt::format("/etc/yoke/launch/{}.sh", name);
    std::string text = node_script(through, plan, options, node);
    text.insert(text.find("pipefail\n") + 9, link_wait_text(plan.nodes[node].own_ip));
    files.push_back({fmt::format("{}/{}", plan.nodes[node].name, script.substr(1)), std::move(text), 0755});
    files.push_back({fmt::format("{}/etc/systemd/system/{}.service", plan.nodes[node].name, name),
                     unit_text(through, plan, node, script, options.limit)});
  }
  return files;
}

}  // namespace yoke::launch
