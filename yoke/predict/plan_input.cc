#include "yoke/predict/plan_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/bench/calibration_files.h"
#include "yoke/engine/footprint.h"
#include "yoke/predict/predicted.h"
#include "yoke/probe/probe.h"
#include "yoke/weights/model_files.h"

namespace yoke::predict {
namespace {

namespace fs = std::filesystem;

constexpr int kRanksCounted = 64;

// Headers only: no weight is read. A model of a format that yoke cannot load still has files whose sizes count.
double safetensors_bytes(const fs::path& folder) {
  const auto files = try_to([&] { return static_cast<double>(weights::ModelFiles(folder).bytes().value); });
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
    return {.language = {}, .image = spec::image_facts_from_config(parse_json(read_file(file), file.string()))};
  }
  const fs::path file = folder / "config.json";
  if (!fs::exists(file)) {
    throw Error(ErrorCode::kNotFound, fmt::format("{} holds no config.json", folder.string()),
                "a model folder has one beside its weights; without a folder give a name of 'yoke plan models'");
  }
  const Document config = parse_json(read_file(file), file.string());
  PlannedModel model{
      .language = spec::facts_from_config(config), .image = {}, .format = plan::format_of_config(config)};
  model.language->name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  model.file_bytes = safetensors_bytes(folder);
  return model;
}

std::vector<std::string> all_model_names() {
  std::vector<std::string> names = spec::model_fact_names();
  for (const std::string& name : spec::image_model_names()) names.push_back(name);
  return names;
}

std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

// The nearest name, else the first ones that begin alike: "llama3" means llama-3.1-8b or its kin.
std::string names_meant(const std::string& text) {
  const std::vector<std::string> names = all_model_names();
  if (const auto meant = nearest(text, names)) return fmt::format("did you mean '{}'? ", *meant);
  const std::string wanted = letters_of(text);
  std::vector<std::string> alike;
  for (const std::string& name : names) {
    if (wanted.size() >= 3 && letters_of(name).starts_with(wanted) && alike.size() < 3) alike.push_back(name);
  }
  return alike.empty() ? "" : fmt::format("did you mean one of {}? ", fmt::join(alike, ", "));
}

std::string digits_of(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c >= '0' && c <= '9') digits += c;
  }
  return digits;
}

// "lama-3.1-405b" is mistyped; "llama-3.3-70b" is another model, whose size is enough for a plan.
std::optional<std::string> mistyped(const std::string& text) {
  const auto meant = nearest(text, all_model_names());
  return meant && digits_of(*meant) == digits_of(text) ? meant : std::nullopt;
}

std::vector<spec::Machine> machines_in(const Document& document) {
  std::vector<spec::Machine> machines;
  if (const Document* const nodes = document.find("nodes")) {
    for (const Document& node : nodes->items) {
      if (const Document* const machine = node.find("machine")) machines.push_back(from_json<spec::Machine>(*machine));
    }
  } else if (const Document* const machine = document.find("machine")) {
    machines.push_back(from_json<spec::Machine>(*machine));
  } else {
    machines.push_back(from_json<spec::Machine>(document));
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
    return {.language = spec::facts_from_config(config), .image = {}, .format = plan::format_of_config(config)};
  }
  if (const spec::ImageModelFacts* image = spec::find_image_model_facts(text)) return {.language = {}, .image = *image};
  if (const spec::ModelFacts* model = spec::find_model_facts(text)) {
    return {.language = *model, .image = {}, .format = model->gpt_oss ? plan::find_format("mxfp4") : nullptr};
  }
  const auto sized = spec::facts_from_size(text);
  if (sized && !mistyped(text)) return {.language = *sized, .image = {}};
  throw Error(ErrorCode::kNotFound, fmt::format("no model is called '{}', and no folder is there", printable(text, 60)),
              fmt::format("{}'yoke plan models' lists the names; a size such as 70B or 397b-a17b works too",
                          names_meant(text)));
}

namespace {

plan::Machines machines_of_cluster(spec::Cluster cluster, const MachinesAsked& asked) {
  if (asked.nodes) {
    if (*asked.nodes < 1 || static_cast<std::size_t>(*asked.nodes) > cluster.nodes.size()) {
      throw Error(ErrorCode::kUsage, fmt::format("--nodes cannot be {}", *asked.nodes),
                  fmt::format("1 to {}: the cluster has no more", cluster.nodes.size()));
    }
    cluster = spec::first_nodes(std::move(cluster), static_cast<std::size_t>(*asked.nodes));
  }
  plan::Machines machines = plan::machines_of(cluster);
  if (!asked.calibration.empty()) return machines;
  if (const auto measured = find_cluster_calibration(cluster)) plan::calibrate(*measured, machines);
  return machines;
}

// The second is whether these are the nodes of a cluster, of which --nodes can take some.
std::pair<plan::Machines, bool> machines_meant(const MachinesAsked& asked) {
  if (!asked.on) {
    if (asked.cluster) return {machines_of_cluster(*asked.cluster, asked), true};
    throw Error(ErrorCode::kUsage, "--on is missing: on which machines?",
                "--on 2xspark, a cluster file, or --on here; 'yoke plan hardware' lists the names");
  }
  const std::string& text = *asked.on;
  if (text == "here") {
    const spec::Machine here = probe::probe_machine(probe::sources_here());
    plan::Machines machines = plan::machines_of(std::vector{here});
    const auto measured = asked.calibration.empty() ? find_calibration_here() : std::nullopt;
    if (measured) {
      const double available = machines.gpu.memory;  // what is there now counts, not what was there then
      plan::calibrate(*measured, machines);
      machines.gpu.memory = available;
    }
    return {machines, false};
  }
  const fs::path path(text);
  if (fs::is_directory(path))
    return {plan::machines_of(std::vector{probe::probe_machine(probe::load_capture(path))}), false};
  if (path.extension() == ".yaml" || path.extension() == ".yml") {
    return {machines_of_cluster(spec::load_cluster(path), asked), true};
  }
  if (path.extension() == ".json") return {plan::machines_of(machines_in(parse_json(read_file(path), text))), false};
  return {plan::parse_machines(text), false};
}

}  // namespace

plan::Machines read_machines(const MachinesAsked& asked) {
  auto [machines, is_cluster] = machines_meant(asked);
  if (asked.nodes && !is_cluster) {
    throw Error(ErrorCode::kUsage, "--nodes takes the first nodes of a cluster file",
                "without one write the number into --on, such as --on 2xspark");
  }
  if (!asked.calibration.empty() && asked.calibration != "none") {
    plan::calibrate(bench::read_calibration(asked.calibration), machines);
  }
  return machines;
}

std::vector<plan::RankWeights> read_rank_weights(const std::string& model) {
  std::vector<plan::RankWeights> weights;
  if (!fs::is_directory(model)) return weights;
  const auto footprints = try_to([&] { return engine::rank_footprints(model, kRanksCounted); });
  if (!footprints) return weights;
  for (const engine::RankFootprint& footprint : *footprints) {
    weights.push_back(
        {.ranks = footprint.tensor,
         .bytes = static_cast<double>(footprint.weights.value),
         .work_space = static_cast<double>(footprint.work_space.value),
         .stages = footprint.stages,
         .layers_part = static_cast<double>(footprint.layers) / static_cast<double>(footprint.layers_all)});
  }
  return weights;
}

}  // namespace yoke::predict
