// The description of an engine: a file that a user can copy and change. It says what runs on which node, with which
// environment, ports, health check and memory options. docs/launch.md describes every key.
//
//   const EngineFile engine = load_engine("vllm");          // shipped, or a path to a file of one's own
//   const auto words = expand_words(engine.processes[0].command, variables);
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"

namespace yoke::launch {

// One word of a command, or several that are there only when a variable is set.
struct CommandWord {
  std::string when;                // a variable that must not be empty; empty: always
  std::vector<std::string> words;  // "{name}" stands for a variable
};

enum class RunsOn { kAll, kHead, kWorkers };
constexpr auto enum_names(RunsOn) {
  return std::array{std::pair{"all", RunsOn::kAll}, std::pair{"head", RunsOn::kHead},
                    std::pair{"workers", RunsOn::kWorkers}};
}

struct EngineProcess {
  std::string name;
  RunsOn on = RunsOn::kAll;
  bool step = false;                      // ends by itself with 0 before the node's next process starts
  std::optional<std::string> after_port;  // waits until this port answers on the nodes that have it
  std::vector<CommandWord> command;
};

struct EngineVariable {
  std::string name, value, reason;
  std::string when;
};

struct EnginePort {
  std::string name;
  int number = 0;
  RunsOn on = RunsOn::kHead;
  std::string use;
};

struct EngineReady {
  std::string path;
  std::string canary;  // "completions": one token of /v1/completions; empty: none
  std::string model;   // what that question calls the model; empty: the served name, or what was given
  Seconds start{1800};
};

// Of what a fraction of memory is, and how high yoke sets it.
struct EngineMemory {
  std::string of;
  double unified_max = 0.8;
  double discrete_max = 0.9;
};

struct EngineImage {
  std::string gpu;  // a part of NVML's name
  std::string image;
};

// A small file that the command refers to by {name}: one line for each node.
struct EngineListFile {
  std::string name, line;
};

// A word after "--" that many choose and few want, and why.
struct EngineTrap {
  std::string word, says;
};

struct EngineSlurm {
  std::string mpi;  // for srun --mpi; empty: none
  std::vector<CommandWord> command;
};

struct EngineKubernetes {
  std::string kind;  // leader-worker-set, job-set, mpi-job
};

struct EngineFile {
  std::string name, title;
  std::string goal;         // serve, train, draw
  std::string plan_engine;  // whose constants 'yoke plan' uses; empty: no plan
  std::string program;      // must be on every node's PATH
  std::string tasks = "node";
  std::string order = "any";  // any, workers-first, head-first
  std::vector<EngineProcess> processes;
  std::vector<EngineVariable> environment;
  std::vector<EnginePort> ports;
  std::vector<EngineListFile> files;
  std::optional<EngineReady> ready;
  std::optional<EngineMemory> memory;
  std::vector<std::string> lower;  // options to lower when memory runs out, in the order of effect
  std::vector<std::string> stop;   // run on every node after the engine ended
  std::vector<EngineImage> images;
  std::optional<EngineSlurm> slurm;
  std::optional<EngineKubernetes> kubernetes;
  std::string rest = "optional";  // words after "--": optional, required
  std::string example;
  std::vector<std::string> remarks;
  std::vector<EngineTrap> traps;
  std::string profile;  // PyTorch's profiler: "switch" ({profile} in the description) or "script"; empty: none

  bool serves() const { return goal == "serve"; }
};

// Throws Error(kInvalid) with the line for unknown keys and unknown variables.
EngineFile parse_engine(std::string_view yaml, std::string_view source);
// A shipped name, or a path that ends in .yaml or .yml. Error(kNotFound) suggests the nearest name.
EngineFile load_engine(const std::string& name_or_path);
std::vector<std::string> engine_names();
std::optional<std::string_view> engine_text(const std::string& name);

// Variables by name; one that is missing or empty is "not set".
using Variables = std::map<std::string, std::string>;
// The words of a command. "{rest}" and "{mpi_exports}" as whole words stand for lists.
using WordLists = std::map<std::string, std::vector<std::string>>;
std::vector<std::string> expand_words(const std::vector<CommandWord>& command, const Variables& variables,
                                      const WordLists& lists);
std::string expand_text(std::string_view text, const Variables& variables);

}  // namespace yoke::launch
