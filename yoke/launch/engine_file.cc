#include "yoke/launch/engine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "yoke/base/embedded.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/base/yaml.h"

namespace yoke::launch {
namespace {

// Every variable that a description may use. Ports of the description come on top, by their names.
constexpr std::array kVariables = {"model",    "model_name", "served_name", "nodes",       "node_rank", "ranks",
                                   "gpus",     "tensor",     "pipeline",    "replicas",    "context",   "sequences",
                                   "head_ip",  "own_ip",     "utilization", "omp_threads", "mpi_hosts", "mpi_exports",
                                   "rpc_list", "rest",       "yoke",        "profile",     "mpi_host"};
// Variables that are only asked whether they are set.
constexpr std::array kConditions = {"head",   "worker",     "several", "alone",    "sharded",
                                    "staged", "replicated", "unified", "discrete", "model_folder"};

constexpr std::array kShipped = {"vllm",      "vllm-ray",  "sglang", "trtllm", "torchrun",        "nemo",
                                 "deepspeed", "llama.cpp", "yoke",   "xdit",   "sglang-generate", "comfyui"};

std::string path_of(std::string_view name) { return fmt::format("yoke/launch/engines/{}.yaml", name); }

// Calls back for each {name} of a text; other braces, as in JSON, are left alone.
template <class Function>
std::string replace_names(std::string_view text, Function value_of) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '{') {
      out += text[i++];
      continue;
    }
    const std::size_t length = text.substr(i, limits::kVariableNameBytes + 2).find('}');
    const std::string_view name = length == std::string_view::npos ? "" : text.substr(i + 1, length - 1);
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!plain) {
      out += text[i++];
      continue;
    }
    out += value_of(std::string(name));
    i += length + 1;
  }
  return out;
}

}  // namespace

void from_json(const Document& document, CommandWord& word) {
  if (document.kind == Document::Kind::kMap) {
    for (const auto& [key, field] : document.fields) {
      if (key == "when") {
        from_json(field, word.when);
      } else if (key == "words") {
        for (const Document& item : field.items) word.words.push_back(item.text);
      } else {
        throw Error(ErrorCode::kInvalid, fmt::format("{}: unknown key '{}'", field.where, printable(key, 60)),
                    "a group of words is { when: VARIABLE, words: [--flag, \"{variable}\"] }");
      }
    }
    if (!word.when.empty() && !word.words.empty()) return;
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a group of words needs 'when' and 'words'", document.where));
  }
  if (document.kind == Document::Kind::kList || document.kind == Document::Kind::kNull) {
    refuse_field(document, "a word of the command");
  }
  word.words = {document.text};
}

template <class Visitor>
void visit_fields(Visitor& visit, EngineProcess& process) {
  visit.required("name", process.name);
  visit.required("on", process.on);
  visit.optional("step", process.step);
  visit.optional("after_port", process.after_port);
  visit.required("command", process.command);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineVariable& variable) {
  visit.required("name", variable.name);
  visit.required("value", variable.value);
  visit.required("reason", variable.reason);
  visit.optional("when", variable.when);
}
template <class Visitor>
void visit_fields(Visitor& visit, EnginePort& port) {
  visit.required("name", port.name);
  visit.required("number", port.number);
  visit.required("on", port.on);
  visit.required("use", port.use);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineReady& ready) {
  visit.required("path", ready.path);
  visit.optional("canary", ready.canary);
  visit.optional("model", ready.model);
  visit.optional("start", ready.start);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineMemory& memory) {
  visit.required("of", memory.of);
  visit.required("unified_max", memory.unified_max);
  visit.required("discrete_max", memory.discrete_max);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineImage& image) {
  visit.required("gpu", image.gpu);
  visit.required("image", image.image);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineListFile& file) {
  visit.required("name", file.name);
  visit.required("line", file.line);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineTrap& trap) {
  visit.required("word", trap.word);
  visit.required("says", trap.says);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineSlurm& slurm) {
  visit.optional("mpi", slurm.mpi);
  visit.optional("command", slurm.command);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineKubernetes& kubernetes) {
  visit.required("kind", kubernetes.kind);
}
template <class Visitor>
void visit_fields(Visitor& visit, EngineFile& engine) {
  visit.required("name", engine.name);
  visit.required("title", engine.title);
  visit.required("goal", engine.goal);
  visit.optional("plan_engine", engine.plan_engine);
  visit.required("program", engine.program);
  visit.optional("tasks", engine.tasks);
  visit.optional("order", engine.order);
  visit.required("processes", engine.processes);
  visit.optional("environment", engine.environment);
  visit.optional("ports", engine.ports);
  visit.optional("files", engine.files);
  visit.optional("ready", engine.ready);
  visit.optional("memory", engine.memory);
  visit.optional("lower", engine.lower);
  visit.optional("stop", engine.stop);
  visit.optional("images", engine.images);
  visit.optional("slurm", engine.slurm);
  visit.optional("kubernetes", engine.kubernetes);
  visit.optional("rest", engine.rest);
  visit.optional("example", engine.example);
  visit.optional("remarks", engine.remarks);
  visit.optional("traps", engine.traps);
  visit.optional("profile", engine.profile);
}

namespace {

void require_one_of(const Document& document, std::string_view key, const std::vector<std::string>& words) {
  const Document* field = document.find(key);
  if (!field || std::find(words.begin(), words.end(), field->text) != words.end()) return;
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: '{}' cannot be '{}'", field->where, key, printable(field->text, 40)),
              suggest(field->text, words, "words"));
}

// A misspelt variable must not become an empty word of a command line.
class VariableNames {
 public:
  explicit VariableNames(const EngineFile& engine) : names_(kVariables.begin(), kVariables.end()) {
    for (const EnginePort& port : engine.ports) names_.push_back(port.name);
    for (const EngineListFile& file : engine.files) names_.push_back(file.name);
    conditions_ = names_;
    conditions_.insert(conditions_.end(), kConditions.begin(), kConditions.end());
  }
  void check_text(std::string_view source, const std::string& text) const {
    replace_names(text, [&](const std::string& name) {
      refuse(source, names_, name);
      return std::string();
    });
  }
  void check_condition(std::string_view source, const std::string& name) const {
    if (!name.empty()) refuse(source, conditions_, name);
  }
  void check_words(std::string_view source, const std::vector<CommandWord>& command) const {
    for (const CommandWord& word : command) {
      check_condition(source, word.when);
      for (const std::string& text : word.words) check_text(source, text);
    }
  }

 private:
  static void refuse(std::string_view source, const std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    throw Error(ErrorCode::kInvalid, fmt::format("{}: there is no variable '{}'", source, printable(name, 60)),
                suggest(name, names, "variables"));
  }
  std::vector<std::string> names_, conditions_;
};

void check_engine(const EngineFile& engine, std::string_view source) {
  const VariableNames names(engine);
  for (const EngineProcess& process : engine.processes) {
    names.check_words(source, process.command);
    if (process.command.empty()) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: the process '{}' has no command", source, process.name));
    }
    if (process.after_port) names.check_condition(source, *process.after_port);
  }
  if (engine.processes.empty()) throw Error(ErrorCode::kInvalid, fmt::format("{}: there is no process", source));
  if (engine.slurm) names.check_words(source, engine.slurm->command);
  for (const EngineVariable& variable : engine.environment) {
    // It stands in scripts, and as it is.
    if (!is_variable_name(variable.name)) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{}: '{}' is no name of a variable", source, printable(variable.name, 60)),
                  "letters, digits and '_', with a letter or '_' first");
    }
    names.check_text(source, variable.value);
    names.check_condition(source, variable.when);
  }
  for (const EngineListFile& file : engine.files) names.check_text(source, file.line);
  if (engine.ready) names.check_text(source, engine.ready->model);
  for (const EnginePort& port : engine.ports) {
    if (port.number >= 1 && port.number <= 65535) continue;
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {} is no port", source, port.number), "from 1 to 65535");
  }
}

}  // namespace

EngineFile parse_engine(std::string_view yaml, std::string_view source) {
  const Document document = parse_yaml(yaml, source);
  auto engine = from_json<EngineFile>(document);
  require_one_of(document, "goal", {"serve", "train", "draw"});
  require_one_of(document, "tasks", {"node", "gpu"});
  require_one_of(document, "order", {"any", "workers-first", "head-first"});
  require_one_of(document, "rest", {"optional", "required"});
  require_one_of(document, "profile", {"switch", "script"});
  check_engine(engine, source);
  return engine;
}

std::vector<std::string> engine_names() { return {kShipped.begin(), kShipped.end()}; }

std::optional<std::string_view> engine_text(const std::string& name) { return embedded_file(path_of(name)); }

EngineFile load_engine(const std::string& name_or_path) {
  if (name_or_path.ends_with(".yaml") || name_or_path.ends_with(".yml")) {
    return parse_engine(read_file(name_or_path, Bytes{1 << 20}), name_or_path);
  }
  const std::vector<std::string> names = engine_names();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    return parse_engine(engine_text(name_or_path).value_or(""), name_or_path + ".yaml");
  }
  const auto meant = nearest(name_or_path, names);
  throw Error(ErrorCode::kNotFound, fmt::format("there is no engine '{}'", printable(name_or_path, 60)),
              fmt::format("{}'yoke launch list' shows them; a file of your own ends in .yaml",
                          meant ? fmt::format("did you mean '{}'? ", *meant) : ""));
}

std::string expand_text(std::string_view text, const Variables& variables) {
  return replace_names(text, [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

std::vector<std::string> expand_words(const std::vector<CommandWord>& command, const Variables& variables,
                                      const WordLists& lists) {
  std::vector<std::string> words;
  for (const CommandWord& group : command) {
    const auto condition = variables.find(group.when);
    if (!group.when.empty() && (condition == variables.end() || condition->second.empty())) continue;
    for (const std::string& word : group.words) {
      const bool is_name = word.size() > 2 && word.front() == '{' && word.back() == '}';
      const auto list = is_name ? lists.find(word.substr(1, word.size() - 2)) : lists.end();
      if (list != lists.end()) {
        words.insert(words.end(), list->second.begin(), list->second.end());
      } else {
        words.push_back(expand_text(word, variables));
      }
    }
  }
  return words;
}

}  // namespace yoke::launch
