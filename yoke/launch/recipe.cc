#include "yoke/launch/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/base/units.h"
#include "yoke/base/yaml.h"
#include "yoke/launch/engine_file.h"

namespace yoke::launch {
namespace {

using Words = std::vector<std::string>;

const Words kKeys = {"name",
                     "recipe_version",
                     "container",
                     "command",
                     "description",
                     "model",
                     "mods",
                     "defaults",
                     "env",
                     "build_args",
                     "cluster_only",
                     "solo_only",
                     "pull_image",
                     "model_revision",
                     "runtime",
                     "min_nodes",
                     "max_nodes",
                     "mode",
                     "runtime_version",
                     "runtime_config",
                     "metadata",
                     "benchmark",
                     "pre_exec",
                     "post_exec",
                     "post_commands",
                     "stop_after_post",
                     "builder",
                     "builder_config",
                     "executor_config",
                     "distribution_config"};
// Code that a recipe would run: named, never run.
constexpr std::array kHooks = {"mods", "build_args", "pre_exec", "post_exec", "post_commands", "builder"};
// What the launcher sets on each node, with whether a value follows.
struct OwnedFlag {
  std::string_view name;
  bool has_value;
};
constexpr std::array kOwned = {OwnedFlag{"--distributed-executor-backend", true},
                               OwnedFlag{"--nnodes", true},
                               OwnedFlag{"--node-rank", true},
                               OwnedFlag{"--master-addr", true},
                               OwnedFlag{"--master-port", true},
                               OwnedFlag{"--dist-init-addr", true},
                               OwnedFlag{"--headless", false},
                               OwnedFlag{"--host", true},
                               OwnedFlag{"--port", true}};

// Cuts at blanks outside of quotes; the quotes stay.
Words raw_words(std::string_view text) {
  Words words;
  std::string word;
  char quote = 0;
  bool any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      word += c;
      if (c == '\\' && quote == '"' && i + 1 < text.size()) word += text[++i];
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
      word += c;
      any = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      if (text[i + 1] != '\n') (word += c) += text[i + 1];
      ++i;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (any || !word.empty()) words.push_back(std::move(word));
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (quote) throw Error(ErrorCode::kInvalid, "the command of the recipe has a quote without its end");
  if (any || !word.empty()) words.push_back(std::move(word));
  return words;
}

std::string without_quotes(std::string_view word) {
  std::string out;
  char quote = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (quote == '\'' || (quote == '"' && c != '\\')) {
      if (c == quote) {
        quote = 0;
      } else {
        out += c;
      }
    } else if (c == '\\' && i + 1 < word.size()) {
      out += word[++i];
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string fill_word(const std::string& word, const std::map<std::string, std::string>& values) {
  const bool doubled = word.find("{{") != std::string::npos;
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::string_view two = std::string_view(word).substr(i, 2);
    if (doubled && (two == "{{" || two == "}}")) {
      out += word[i++];
      continue;
    }
    const std::string_view near = std::string_view(word).substr(i, limits::kVariableNameBytes + 2);
    const std::size_t length = word[i] == '{' ? near.find('}') : near.npos;
    const auto value = length == near.npos ? values.end() : values.find(std::string(near.substr(1, length - 1)));
    if (value == values.end()) {
      out += word[i];
    } else {
      out += value->second;
      i += length;
    }
  }
  return out;
}

const Document* member_of(const Document& document, std::string_view key) {
  const Document* const found = document.find(key);
  return found && found->kind != Document::Kind::kNull ? found : nullptr;
}

std::string text_of(const Document& document, std::string_view key) {
  const Document* const found = member_of(document, key);
  return found ? found->text : "";
}

void refuse_unknown(const Document& recipe) {
  for (const auto& [key, field] : recipe.fields) {
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    throw Error(ErrorCode::kInvalid, fmt::format("{}: unknown key '{}'", field.where, printable(key, 60)),
                suggest(key, kKeys, "keys"));
  }
}

Words without_owned(const Words& argv) {
  Words kept;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string name = argv[i].substr(0, argv[i].find('='));
    const auto owned =
        std::find_if(kOwned.begin(), kOwned.end(), [&](const OwnedFlag& flag) { return flag.name == name; });
    if (owned == kOwned.end()) {
      kept.push_back(argv[i]);
    } else if (owned->has_value && argv[i].find('=') == std::string::npos) {
      ++i;
    }
  }
  return kept;
}

std::string quoted_word(const std::string& word) { return print_json(Document::string(word), JsonLayout::kOneLine); }

std::string description_of(const ConvertedRecipe& recipe, const std::string& name, const std::string& image,
                           const std::vector<std::pair<std::string, std::string>>& environment) {
  const bool vllm = recipe.engine == "vllm";
  std::string text = fmt::format(
      "name: {}\ntitle: {}\ngoal: serve\nplan_engine: {}\nprogram: {}\norder: workers-first\nprocesses:\n"
      "  - name: serve\n    on: all\n    command:\n",
      recipe.engine, quoted_word(name + ", from a recipe"), recipe.engine, quoted_word(recipe.argv.front()));
  for (const std::string& word : recipe.argv) {
    text += fmt::format("      - {}\n", word == recipe.model && !word.empty() ? "\"{model}\"" : quoted_word(word));
  }
  text +=
      vllm ? "      - { when: several, words: [--nnodes, \"{nodes}\", --node-rank, \"{node_rank}\", --master-addr, "
             "\"{head_ip}\", --master-port, \"{master_port}\"] }\n"
             "      - { when: head, words: [--host, \"0.0.0.0\", --port, \"{port}\"] }\n"
             "      - { when: worker, words: [--headless] }\n"
           : "      - { when: several, words: [--dist-init-addr, \"{head_ip}:{dist_port}\", --nnodes, \"{nodes}\", "
             "--node-rank, \"{node_rank}\"] }\n      - --host\n      - 0.0.0.0\n      - --port\n      - \"{port}\"\n";
  text += "      - \"{rest}\"\nenvironment:\n";
  text += fmt::format(
      "  - {{ name: {}_HOST_IP, value: \"{{own_ip}}\", reason: \"The engine's own messages use this address.\" }}\n",
      vllm ? "VLLM" : "SGLANG");
  for (const auto& [variable, value] : environment) {
    text += fmt::format("  - {{ name: {}, value: {}, reason: From the recipe. }}\n", quoted_word(variable),
                        quoted_word(value));
  }
  text += vllm ? "ports:\n  - { name: port, number: 8000, on: head, use: HTTP API }\n"
                 "  - { name: master_port, number: 29501, on: head, use: torch store }\n"
               : "ports:\n  - { name: port, number: 30000, on: all, use: HTTP API }\n"
                 "  - { name: dist_port, number: 20000, on: head, use: torch store }\n";
  text += "ready: { path: /health, canary: completions, start: 30min }\n";
  text += vllm ? "lower: [--gpu-memory-utilization, --max-num-batched-tokens, --max-num-seqs, --max-model-len]\n"
               : "lower: [--mem-fraction-static, --chunked-prefill-size, --max-running-requests, --context-length]\n";
  if (!image.empty()) text += fmt::format("images:\n  - {{ gpu: \"\", image: {} }}\n", quoted_word(image));
  return text + "kubernetes: { kind: leader-worker-set }\n";
}

std::vector<std::pair<std::string, std::string>> environment_of_recipe(const Document& recipe, Words& notes) {
  std::vector<std::pair<std::string, std::string>> environment;
  const Document* const env = member_of(recipe, "env");
  if (!env) return environment;
  for (const auto& [name, value] : env->fields) {
    if (value.text.find('$') != std::string::npos || name.find("TOKEN") != std::string::npos) {
      notes.push_back(
          fmt::format("env {} is left out: it takes a value, or a secret, from the machine of the launcher.", name));
    } else {
      environment.emplace_back(name, value.text);
    }
  }
  return environment;
}

}  // namespace

Words recipe_words(std::string_view command, const std::map<std::string, std::string>& values) {
  Words words;
  std::size_t bytes = 0;
  for (const std::string& raw : raw_words(command)) {
    const std::string filled = fill_word(raw, values);
    bytes += filled.size();
    if (bytes > limits::kCommandBytes) {
      throw Error(ErrorCode::kInvalid, fmt::format("the command of the recipe has more than {}",
                                                   to_string(Bytes{std::int64_t{limits::kCommandBytes}})));
    }
    // A value may hold blanks: then it is several words, unless it stands in quotes.
    for (const std::string& word : raw_words(filled)) words.push_back(without_quotes(word));
  }
  return words;
}

ConvertedRecipe convert_recipe(std::string_view yaml, std::string_view source) {
  const Document recipe = parse_yaml(yaml, source);
  refuse_unknown(recipe);
  const std::string command = text_of(recipe, "command");
  if (command.empty()) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: the recipe has no command", source),
                "yoke reads recipes that state their command line");
  }
  std::map<std::string, std::string> values;
  if (const Document* const defaults = member_of(recipe, "defaults")) {
    for (const auto& [key, value] : defaults->fields) values[key] = value.text;
  }
  ConvertedRecipe converted{
      .engine = {}, .model = text_of(recipe, "model"), .argv = {}, .description = {}, .notes = {}};
  if (!converted.model.empty()) values["model"] = converted.model;
  const Words words = recipe_words(command, values);
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  converted.engine = has("vllm") && has("serve") ? "vllm" : has("sglang.launch_server") ? "sglang" : "";
  if (converted.engine.empty()) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: the command starts neither 'vllm serve' nor SGLang", source),
                "yoke launch list");
  }
  converted.argv = without_owned(words);
  if (converted.model.empty() && converted.engine == "vllm") {
    const auto serve = std::find(converted.argv.begin(), converted.argv.end(), "serve");
    if (serve + 1 != converted.argv.end()) converted.model = *(serve + 1);
  }
  for (const char* hook : kHooks) {
    if (member_of(recipe, hook))
      converted.notes.push_back(fmt::format("{} of the recipe is not run: look at it.", hook));
  }
  const std::string image = text_of(recipe, "container");
  if (image.ends_with(":latest")) converted.notes.push_back("The image is ':latest', which changes: name a digest.");
  if (has("--trust-remote-code")) converted.notes.push_back("--trust-remote-code runs code of the model's author.");
  const auto environment = environment_of_recipe(recipe, converted.notes);
  converted.description = description_of(
      converted, text_of(recipe, "name").empty() ? std::string(source) : text_of(recipe, "name"), image, environment);
  parse_engine(converted.description, source);  // what is written can be read
  return converted;
}

}  // namespace yoke::launch
