#include "yoke/cli/plan_input.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/probe/probe.h"
#include "yoke/weights/model_files.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;

// Headers only: no weight is read. A model of a format that yoke cannot load still has files whose sizes count.
double safetensors_bytes(const fs::path& folder) {
  const auto files = try_to([&] { return static_cast<double>(ModelFiles(folder).bytes().value); });
  if (files) return *files;
  if (files.error().code() == ErrorCode::kNotFound) return 0;
  if (files.error().code() != ErrorCode::kUnsupported) throw files.error();
  double sum = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") sum += static_cast<double>(entry.file_size());
  }
  return sum;
}

PlannedModel read_folder(const fs::path& folder) {
  if (fs::exists(folder / "transformer/config.json")) {
    const fs::path file = folder / "transformer/config.json";
    return {.language = {}, .image = image_facts_from_config(parse_json(read_file(file), file.string()))};
  }
  const fs::path file = folder / "config.json";
  if (!fs::exists(file)) {
    throw Error(ErrorCode::kNotFound, fmt::format("{} holds no config.json", folder.string()),
                "a model folder has one beside its weights; without a folder give a name of 'yoke plan models'");
  }
  const Document config = parse_json(read_file(file), file.string());
  PlannedModel model{.language = facts_from_config(config), .image = {}, .format = plan::format_of_config(config)};
  model.language->name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  model.file_bytes = safetensors_bytes(folder);
  return model;
}

std::vector<std::string> all_model_names() {
  std::vector<std::string> names = model_fact_names();
  for (const std::string& name : image_model_names()) names.push_back(name);
  return names;
}

std::vector<Machine> machines_in(const Document& document) {
  std::vector<Machine> machines;
  if (const Document* const nodes = document.find("nodes")) {
    for (const Document& node : nodes->items) {
      if (const Document* const machine = node.find("machine")) machines.push_back(machine_from_json(*machine));
    }
  } else if (const Document* const machine = document.find("machine")) {
    machines.push_back(machine_from_json(*machine));
  } else {
    machines.push_back(machine_from_json(document));
  }
  if (machines.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: no node's facts are in it", document.where),
                "'yoke probe --json' writes such a file");
  }
  return machines;
}

}  // namespace

PlannedModel read_planned_model(const std::string& text) {
  const fs::path path(text);
  if (fs::is_directory(path)) return read_folder(path);
  if (path.extension() == ".json" && fs::exists(path)) {
    const Document config = parse_json(read_file(path), text);
    return {.language = facts_from_config(config), .image = {}, .format = plan::format_of_config(config)};
  }
  if (const ImageModelFacts* image = find_image_model_facts(text)) return {.language = {}, .image = *image};
  if (const ModelFacts* model = find_model_facts(text)) {
    return {.language = *model, .image = {}, .format = model->gpt_oss ? plan::find_format("mxfp4") : nullptr};
  }
  if (const auto sized = facts_from_size(text)) return {.language = *sized, .image = {}};
  const std::vector<std::string> names = all_model_names();
  const auto meant = nearest(text, names);
  throw Error(ErrorCode::kNotFound, fmt::format("no model is called '{}', and no folder is there", printable(text, 60)),
              fmt::format("{}'yoke plan models' lists the names; a size such as 70B or 397b-a17b works too",
                          meant ? fmt::format("did you mean '{}'? ", *meant) : ""));
}

plan::Machines read_machines(const Session& session, const std::optional<std::string>& text) {
  if (!text) {
    if (find_cluster_file(session)) return plan::machines_of(load_session_cluster(session));
    throw Error(ErrorCode::kUsage, "--on is missing: on which machines?",
                "--on 2xspark, a cluster file, or --on here; 'yoke plan hardware' lists the names");
  }
  if (*text == "here") return plan::machines_of(std::vector{probe_machine(sources_here())});
  const fs::path path(*text);
  if (fs::is_directory(path)) return plan::machines_of(std::vector{probe_machine(load_capture(path))});
  if (path.extension() == ".yaml" || path.extension() == ".yml") return plan::machines_of(load_cluster(path));
  if (path.extension() == ".json") return plan::machines_of(machines_in(parse_json(read_file(path), *text)));
  return plan::parse_machines(*text);
}

}  // namespace yoke
