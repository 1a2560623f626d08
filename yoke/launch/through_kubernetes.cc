// Manifests for Kubernetes: LeaderWorkerSet v1, JobSet v1alpha2, MPIJob v2beta1. Written as text, so that each line can
// have its reason beside it.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/launch/through.h"

namespace yoke::launch {
namespace {

constexpr std::int64_t kPodMemoryMib = 64 << 10;  // of host memory, where a limit must be named

// A YAML text in quotes: JSON's form is YAML too.
std::string quoted(const std::string& text) { return print_json(Document::string(text), JsonLayout::kOneLine); }

std::string list_of(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) text += (text.size() > 1 ? ", " : "") + quoted(word);
  return text + "]";
}

std::string indented(const std::string& text, int by) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) out += std::string(static_cast<std::size_t>(by), ' ') + line + "\n";
  }
  return out;
}

// Pods are not tied to nodes: only what is the same on all of them can be pinned.
std::string environment_text(const LaunchPlan& plan, const Variables& names) {
  std::string text = "env:\n";
  const auto same_everywhere = [&](const spec::FabricPin& pin) {
    return std::all_of(plan.environment.begin(), plan.environment.end(), [&](const std::vector<spec::FabricPin>& all) {
      return std::find_if(all.begin(), all.end(), [&](const spec::FabricPin& other) {
               return other.name == pin.name && other.value == pin.value;
             }) != all.end();
    });
  };
  text += "  - name: POD_IP\n    valueFrom: { fieldRef: { fieldPath: status.podIP } }\n";
  for (const spec::FabricPin& pin : plan.environment.front()) {
    const auto own = std::find_if(plan.engine.environment.begin(), plan.engine.environment.end(),
                                  [&](const EngineVariable& variable) { return variable.name == pin.name; });
    if (own != plan.engine.environment.end()) {
      Variables variables = plan.common;
      for (const auto& [name, value] : names) variables[name] = value;
      text += fmt::format("  - {{ name: {}, value: {} }}  # {}\n", pin.name, quoted(expand_text(own->value, variables)),
                          pin.reason);
    } else if (same_everywhere(pin)) {
      text += fmt::format("  - {{ name: {}, value: {} }}  # {}\n", pin.name, quoted(pin.value), pin.reason);
    } else {
      text += fmt::format("  # {} differs between the nodes and is left to the program.\n", pin.name);
    }
  }
  // The token comes from a Secret, never from this file.
  text += "  - name: HF_TOKEN\n    valueFrom: { secretKeyRef: { name: hf-token, key: token, optional: true } }\n";
  return text;
}

std::string container_text(const LaunchPlan& plan, const ThroughOptions& options, const std::vector<std::string>& argv,
                           const Variables& names, const std::string& probes) {
  const LaunchNode& node = plan.nodes.front();
  std::string limits;
  if (node.has_gpu) limits += fmt::format("    nvidia.com/gpu: \"{}\"\n", node.gpus);
  if (!options.rdma_resource.empty()) limits += fmt::format("    {}: \"1\"\n", options.rdma_resource);
  if (options.hugepages.value > 0) {
    // Kubernetes wants a limit of memory beside huge pages, and takes limits as requests.
    limits += fmt::format("    hugepages-2Mi: \"{}Mi\"\n    memory: \"{}Mi\"\n", options.hugepages.value >> 20,
                          kPodMemoryMib + (options.hugepages.value >> 20));
  }
  std::string text = fmt::format("- name: engine\n  image: {}\n  command: {}\n", plan.image, list_of(argv));
  text += indented(environment_text(plan, names), 2);
  if (!limits.empty()) text += "  resources:\n    limits:\n" + indented(limits, 2);
  text += "  securityContext: { capabilities: { add: [IPC_LOCK] } }  # to lock memory for RDMA\n";
  text += probes.empty() ? "" : indented(probes, 2);
  text += "  volumeMounts:\n    - { name: shm, mountPath: /dev/shm }\n";
  if (options.hugepages.value > 0) text += "    - { name: hugepages, mountPath: /dev/hugepages }\n";
  if (plan.options.model.starts_with('/')) {
    text += fmt::format("    - {{ name: model, mountPath: {}, readOnly: true }}\n", quoted(plan.options.model));
  }
  return text;
}

std::string pod_text(const LaunchPlan& plan, const ThroughOptions& options, const std::vector<std::string>& argv,
                     const Variables& names, const std::string& probes, const std::string& restart) {
  std::string text =
      "spec:\n  hostNetwork: true  # the rails belong to the node\n  dnsPolicy: ClusterFirstWithHostNet\n" + restart;
  text += "  containers:\n" + indented(container_text(plan, options, argv, names, probes), 4);
  text +=
      "  volumes:\n    - { name: shm, emptyDir: { medium: Memory, sizeLimit: 10Gi } }  # counts as the pod's memory\n";
  if (options.hugepages.value > 0) text += "    - { name: hugepages, emptyDir: { medium: HugePages-2Mi } }\n";
  if (plan.options.model.starts_with('/')) {
    text +=
        fmt::format("    - {{ name: model, hostPath: {{ path: {}, type: Directory }} }}\n", quoted(plan.options.model));
  }
  return text;
}

const EngineProcess* main_process(const LaunchPlan& plan, bool head) {
  const EngineProcess* found = nullptr;
  for (const EngineProcess& process : plan.engine.processes) {
    if (!process.step && process.on != (head ? RunsOn::kWorkers : RunsOn::kHead)) found = &process;
  }
  return found;
}

std::string leader_worker_set(const LaunchPlan& plan, const ThroughOptions& options) {
  const Variables names = {{"node_rank", "$(LWS_WORKER_INDEX)"},
                           {"head_ip", "$(LWS_LEADER_ADDRESS)"},
                           {"own_ip", "$(POD_IP)"},
                           {"yoke", "yoke"}};
  const auto argv = [&](bool head) {
    const EngineProcess* process = main_process(plan, head);
    return process_words(plan, process->command, head || !plan.several() ? 0 : 1, names);
  };
  const std::string probes = fmt::format(
      "startupProbe: {{ httpGet: {{ path: {}, port: {} }}, periodSeconds: 10, failureThreshold: 180 }}\n"
      "readinessProbe: {{ httpGet: {{ path: {}, port: {} }}, periodSeconds: 10 }}\n",
      plan.engine.ready->path, plan.port("port"), plan.engine.ready->path, plan.port("port"));
  return fmt::format(
             "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: {}\nspec:\n"
             "  replicas: 1\n"
             "  startupPolicy: LeaderCreated  # LeaderReady would wait for ever: the leader is ready after its "
             "workers\n"
             "  leaderWorkerTemplate:\n    size: {}\n"
             "    restartPolicy: RecreateGroupOnPodRestart  # a lost rank cannot rejoin\n    leaderTemplate:\n",
             container_name(plan), plan.nodes.size()) +
         fmt::format("      metadata: {{ labels: {{ role: leader, app: {} }} }}\n", container_name(plan)) +
         indented(pod_text(plan, options, argv(true), names, probes, ""), 6) + "    workerTemplate:\n" +
         indented(pod_text(plan, options, argv(false), names, "", ""), 6) +
         fmt::format(
             "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {}-api\nspec:\n"
             "  selector: {{ role: leader, app: {} }}\n  ports: [{{ name: http, port: {}, targetPort: {} }}]\n",
             container_name(plan), container_name(plan), plan.port("port"), plan.port("port"));
}

std::string job_set(const LaunchPlan& plan, const ThroughOptions& options) {
  const std::string name = container_name(plan);
  const Variables names = {{"node_rank", "$(JOB_COMPLETION_INDEX)"},
                           {"head_ip", fmt::format("{}-ranks-0-0.{}", name, name)},
                           {"own_ip", "$(POD_IP)"}};
  const auto argv = process_words(plan, main_process(plan, true)->command, 0, names);
  return fmt::format(
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: {}\nspec:\n"
             "  network: {{ enableDNSHostnames: true, publishNotReadyAddresses: true }}\n"
             "  failurePolicy: {{ maxRestarts: 3 }}\n  replicatedJobs:\n    - name: ranks\n      replicas: 1\n"
             "      template:\n        spec:\n          completionMode: Indexed  # the index is the node's rank\n"
             "          parallelism: {}\n          completions: {}\n          backoffLimit: 0\n          template:\n",
             name, plan.nodes.size(), plan.nodes.size()) +
         indented(pod_text(plan, options, argv, names, "", "  restartPolicy: Never\n"), 12);
}

std::string mpi_job(const LaunchPlan& plan, const ThroughOptions& options) {
  const std::string name = container_name(plan);
  const Variables names = {{"own_ip", "$(POD_IP)"}};
  std::vector<std::string> launcher = {"mpirun", "-np", plan.common.at("ranks"), "--allow-run-as-root"};
  for (const spec::FabricPin& pin : plan.environment.front()) launcher.insert(launcher.end(), {"-x", pin.name});
  const auto command = process_words(plan, plan.engine.slurm->command, 0, names);
  launcher.insert(launcher.end(), command.begin(), command.end());
  LaunchPlan light = plan;  // the launcher takes a worker's place: it needs no GPU of its own
  for (LaunchNode& node : light.nodes) node.has_gpu = false;
  ThroughOptions without = options;
  without.rdma_resource.clear();
  without.hugepages = Bytes{0};
  const std::vector<std::string> sshd = {"/usr/sbin/sshd", "-De"};
  return fmt::format(
             "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata:\n  name: {}\nspec:\n  slotsPerWorker: {}\n"
             "  mpiImplementation: OpenMPI\n  launcherCreationPolicy: WaitForWorkersReady\n"
             "  sshAuthMountPath: /root/.ssh\n  runPolicy: {{ cleanPodPolicy: Running, backoffLimit: 3 }}\n"
             "  mpiReplicaSpecs:\n    Launcher:\n      replicas: 1\n      template:\n",
             name, plan.nodes.front().gpus) +
         indented(pod_text(light, without, launcher, names, "", ""), 8) +
         fmt::format("    Worker:\n      replicas: {}\n      template:\n", plan.nodes.size()) +
         indented(pod_text(plan, options, sshd, names, "", ""), 8);
}

}  // namespace

RenderedFile kubernetes_manifest(const LaunchPlan& plan, const ThroughOptions& options) {
  if (!plan.engine.kubernetes) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the description of {} has no form for Kubernetes", plan.engine.name),
                "--through ssh, docker or slurm; or add 'kubernetes' to a copy of the description");
  }
  if (plan.image.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("no container image of {} is known for these nodes", plan.engine.name),
                "--image NAME:TAG");
  }
  const std::string kind = plan.engine.kubernetes->kind;
  std::string text =
      fmt::format("# {}, written by 'yoke launch {} --through kubernetes'.\n", plan.engine.title, plan.engine.name);
  if (options.rdma_resource.empty()) {
    text +=
        "# No RDMA device is asked for: its name is the site's. Give it with --rdma-resource, such as\n"
        "# rdma/hca_shared_devices_a; without it NCCL stops, because NCCL_NET=IB forbids TCP.\n";
  }
  if (kind == "leader-worker-set" && plan.engine.ready) {
    text += leader_worker_set(plan, options);
  } else if (kind == "job-set") {
    text += job_set(plan, options);
  } else if (kind == "mpi-job" && plan.engine.slurm) {
    text += mpi_job(plan, options);
  } else {
    throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no form for Kubernetes", printable(kind, 40)),
                "leader-worker-set (with 'ready'), job-set, or mpi-job (with 'slurm: command')");
  }
  return {container_name(plan) + ".yaml", std::move(text)};
}

}  // namespace yoke::launch
