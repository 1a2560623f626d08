#include "yoke/launch/prep_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "yoke/base/fields.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/probe/probe.h"

namespace yoke::launch {

template <class Visitor>
void visit_fields(Visitor& visit, PrepAnswer& answer) {
  visit.optional("tools", answer.tools);
  visit.required("docker_problem", answer.docker_problem);
  visit.required("disk_free", answer.disk_free);
  visit.required("architecture", answer.architecture);
  visit.optional("nccl_without", answer.nccl_without);
  visit.required("nccl_builds", answer.nccl_builds);
  visit.optional("endpoint_problem", answer.endpoint_problem);
  visit.optional("endpoint_time", answer.endpoint_time);
}

namespace {

struct PrepTool {
  const char* name;
  const char* why;
  const char* fix;
  bool required;
};
constexpr std::array kTools = {
    PrepTool{"curl", "downloads of models", "sudo apt-get install curl", true},
    PrepTool{"docker", "engines in containers", "install docker-ce, or use --through ssh", true},
    PrepTool{"git", "builds of NCCL and nccl-tests", "sudo apt-get install git", false},
    PrepTool{"make", "builds of NCCL and nccl-tests", "sudo apt-get install build-essential", false},
    PrepTool{"nvcc", "builds of NCCL and nccl-tests", "put /usr/local/cuda/bin on PATH, on every node", false},
    PrepTool{"mpirun", "nccl-tests over several nodes", "sudo apt-get install openmpi-bin libopenmpi-dev", false},
    PrepTool{"all_reduce_perf", "the measurement that others compare with",
             "build nccl-tests; 'yoke bench' measures too", false},
};

bool has_code_for(const spec::NcclBuild& build, const std::string& architecture) {
  const auto same_major = [&](const std::string& code) {
    // sm_120 runs on sm_121; the kinds with a letter run on their own only.
    return code == architecture ||
           (code.size() == architecture.size() && std::isdigit(code.back()) &&
            code.substr(0, code.size() - 1) == architecture.substr(0, architecture.size() - 1) && code <= architecture);
  };
  return std::any_of(build.architectures.begin(), build.architectures.end(), same_major) || !build.ptx.empty();
}

// Whether models can be downloaded here: one request without content, as curl does it (proxies, certificates).
void inspect_endpoint(PrepAnswer& answer) {
  const char* set = std::getenv("HF_ENDPOINT");
  const std::string endpoint = set && *set ? set : "https://huggingface.co";
  const auto asked = try_to([&] {
    return run(
        {.argv = {"curl", "-sS", "--head", "--max-time", "4", "-o", "/dev/null", "-w", "%{time_total}", endpoint},
         .timeout = Seconds{10}});
  });
  if (!asked) {
    answer.endpoint_problem = asked.error().message();
  } else if (!asked->ok()) {
    answer.endpoint_problem = asked->describe();
  } else {
    answer.endpoint_time = Seconds{std::strtod(asked->out.c_str(), nullptr)};
  }
}

}  // namespace

PrepAnswer prep_here() {
  PrepAnswer answer;
  for (const PrepTool& tool : kTools) {
    const auto found = try_to([&] { return run({.argv = {"sh", "-c", fmt::format("command -v {}", tool.name)}}); });
    if (found && found->ok()) answer.tools.emplace_back(tool.name);
  }
  const auto docker = try_to([] { return run({.argv = {"docker", "info"}, .timeout = Seconds{10}}); });
  if (!docker) {
    answer.docker_problem = docker.error().message();
  } else if (!docker->ok()) {
    answer.docker_problem = docker->describe();
  }
  inspect_endpoint(answer);
  std::error_code failure;
  const char* home = std::getenv("HOME");
  const auto space = std::filesystem::space(home && *home ? home : "/", failure);
  if (!failure) answer.disk_free = Bytes{static_cast<std::int64_t>(space.available)};
  const spec::Machine machine = probe_machine(probe::sources_here());
  if (!machine.gpus.empty() && machine.gpus.front().compute_capability) {
    std::string digits = *machine.gpus.front().compute_capability;
    std::erase(digits, '.');
    answer.architecture = "sm_" + digits;
  }
  answer.nccl_builds = static_cast<int>(machine.nccl.size());
  const bool covered = std::any_of(machine.nccl.begin(), machine.nccl.end(), [&](const spec::NcclBuild& build) {
    return has_code_for(build, answer.architecture);
  });
  if (!answer.architecture.empty() && !machine.nccl.empty() && !covered) {
    answer.nccl_without = machine.nccl.front().version.value_or(machine.nccl.front().path);
  }
  return answer;
}

void from_json(const Document& document, PrepAnswer& answer) { read_fields(document, answer); }
Document answer_prep_look(const Document&, agent::AgentContext&) { return to_document(prep_here()); }

std::vector<PrepNeed> evaluate_prep(const std::string& node, const PrepAnswer& answer) {
  std::vector<PrepNeed> needs;
  const auto is_there = [&](const char* tool) {
    return std::find(answer.tools.begin(), answer.tools.end(), tool) != answer.tools.end();
  };
  for (const PrepTool& tool : kTools) {
    if (is_there(tool.name)) continue;
    needs.push_back(
        {node, fmt::format("{} is not installed: needed for {}.", tool.name, tool.why), tool.fix, tool.required});
  }
  if (is_there("docker") && !answer.docker_problem.empty()) {
    needs.push_back({node, fmt::format("Docker cannot be used: {}.", printable(answer.docker_problem, 120)),
                     "sudo systemctl start docker; sudo usermod -aG docker $USER, then log in again"});
  }
  if (answer.nccl_without) {
    needs.push_back({node, fmt::format("NCCL {} has no code for {}.", *answer.nccl_without, answer.architecture),
                     fmt::format("yoke prep nccl: builds it for {} on every node", answer.architecture)});
  }
  if (!answer.endpoint_problem.empty()) {
    needs.push_back({node,
                     fmt::format("The model server cannot be reached: {}.", printable(answer.endpoint_problem, 120)),
                     "connect one node to the internet, or prepare from a drive: yoke prep --from /media/disk", false});
  }
  return needs;
}

}  // namespace yoke::launch
