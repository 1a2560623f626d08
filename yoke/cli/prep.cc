#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/fleet/fleet.h"
#include "yoke/launch/hub.h"
#include "yoke/launch/prep_day.h"
#include "yoke/launch/prep_look.h"

namespace yoke::cli {

namespace {

namespace fs = std::filesystem;

struct ModelOptions {
  std::string id;
  std::optional<std::string> folder;
  std::string revision = "main";
  std::vector<std::string> exclude;
  int parallel = 4;
  bool dry_run = false;
};

void drop_excluded(launch::HubModel& model, const std::vector<std::string>& patterns) {
  std::erase_if(model.files, [&](const launch::HubFile& file) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return launch::fits_pattern(file.path, pattern); });
  });
}

Document model_json(const launch::HubModel& model, const fs::path& folder, std::string_view state) {
  Document files = Document::list();
  for (const launch::HubFile& file : model.files) {
    files.items.push_back(Document::map(
        {{"path", Document::string(file.path)}, {"size", Document::number(static_cast<std::int64_t>(file.size))}}));
  }
  return Document::map({{"model", Document::string(model.id)},
                        {"commit", Document::string(model.commit)},
                        {"licence", Document::string(model.licence)},
                        {"gate", Document::string(model.gate)},
                        {"bytes", Document::number(static_cast<std::int64_t>(model.bytes()))},
                        {"folder", Document::string(folder.native())},
                        {"state", Document::string(std::string(state))},
                        {"files", std::move(files)}});
}

void describe(Session& session, const launch::HubModel& model, const fs::path& folder) {
  if (session.json) return;
  session.print(fmt::format("{}: {} files, {}; commit {}\n", model.id, model.files.size(),
                            to_string(Bytes{static_cast<std::int64_t>(model.bytes())}), model.commit.substr(0, 12)));
  session.print(
      fmt::format("Licence: {}. {}\n", model.licence.empty() ? "not stated" : model.licence,
                  model.gate.empty() ? "Open to everybody." : "Gated: its owner must have granted you access."));
  session.print(fmt::format("Into {}\n", folder.native()));
}

// The part that is there already counts.
void check_space(const launch::HubModel& model, const fs::path& folder) {
  std::error_code failure;
  fs::path place = fs::absolute(folder);
  while (!fs::exists(place, failure) && place.has_parent_path() && place != place.parent_path()) {
    place = place.parent_path();
  }
  std::uint64_t there = 0;
  const fs::path partial = folder.native() + ".partial";
  if (fs::exists(partial, failure)) {
    for (const auto& entry : fs::recursive_directory_iterator(partial, failure)) {
      if (entry.is_regular_file(failure)) there += entry.file_size(failure);
    }
  }
  const fs::space_info space = fs::space(place, failure);
  const std::uint64_t needed = model.bytes() > there ? model.bytes() - there : 0;
  if (failure || space.available >= needed) return;
  throw Error(
      ErrorCode::kExhausted,
      fmt::format("{} needs {} more, and {} has {}", model.id, to_string(Bytes{static_cast<std::int64_t>(needed)}),
                  place.native(), to_string(Bytes{static_cast<std::int64_t>(space.available)})),
      "free some, name another folder, or leave files out with --exclude");
}

int prep_model(Session& session, const ModelOptions& options) {
  const launch::Hub hub = launch::hub_of_environment();
  launch::HubModel model = launch::describe_model(hub, options.id, options.revision);
  drop_excluded(model, options.exclude);
  const fs::path folder = options.folder ? fs::path(*options.folder) : fs::path(options.id).filename();
  describe(session, model, folder);
  if (!model.gate.empty() && hub.token.empty()) {
    throw Error(ErrorCode::kPermission, fmt::format("{} is gated, and there is no token", model.id),
                fmt::format("accept its terms at https://{}/{}, then set HF_TOKEN", hub.endpoint.host, model.id));
  }
  if (fs::exists(folder)) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is there already", folder.native()),
                "a complete download has this name; remove it, or name another folder");
  }
  check_space(model, folder);
  if (!options.dry_run) {
    Progress progress("downloading " + options.id, static_cast<std::int64_t>(model.bytes()));
    launch::download_model(hub, model, folder,
                           {.parallel = options.parallel, .on_progress = [&](std::uint64_t done, std::string_view) {
                              progress.update(static_cast<std::int64_t>(done));
                            }});
  }
  if (session.json) {
    session.print_json(model_json(model, folder, options.dry_run ? "to-do" : "complete"));
  } else {
    session.print(options.dry_run ? "Nothing was downloaded: this was a dry run.\n"
                                  : "Complete. Every file has the size and hash that the Hub lists.\n");
  }
  return kExitOk;
}

CommandRow prep_model_command() {
  return {
      .name = "model",
      .summary = "download a model from a Hugging Face Hub: resumed, parallel, verified",
      .description =
          "Downloads a model at one commit. Licence, gate and size are printed first. Files come in pieces, several "
          "at once; a download that was cut or killed continues where it stopped. Every file is checked by size and "
          "hash, and the folder appears under its name only when all are right. HF_ENDPOINT names another server of "
          "the same protocol, HF_TOKEN (or the file of the Hub's own tools) a token, HTTPS_PROXY and NO_PROXY a "
          "proxy. The token is sent to the endpoint's host only, and is in no argument and no log.",
      .examples = {{"yoke prep model Qwen/Qwen3-32B /models/qwen3-32b", "into a folder"},
                   {"yoke prep model Qwen/Qwen3-32B --dry-run", "licence, gate and size only"},
                   {"yoke prep model org/name --exclude '*.gguf' --exclude 'original/*'", "without some files"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<ModelOptions>();
        table.positional("MODEL", "as the Hub names it, such as Qwen/Qwen3-32B", options->id, Presence::kRequired);
        table.positional("FOLDER", "where to (its last name in this folder unless given)", options->folder,
                         Presence::kOptional);
        table.value("--revision", "NAME", "a branch, tag or commit (main unless given)", options->revision);
        table.values("--exclude", "PATTERN", "leave out files, such as '*.bin'; may be repeated", options->exclude);
        table.value("--parallel", "N", "files at once (4 unless given)", options->parallel, {.min = 1, .max = 32});
        table.flag("--dry-run", "print what would be downloaded", options->dry_run);
        return [options](Session& session) { return prep_model(session, *options); };
      }};
}

// What `yoke prep` alone prints: what each node lacks.

constexpr Seconds kPrepLimit{60};

struct PreparedNode {
  std::string name;
  launch::PrepAnswer answer;
};

std::vector<PreparedNode> ask_nodes(const Session& session) {
  const auto cluster = read_session_cluster(session);
  if (!cluster) return {{"this machine", launch::prep_here()}};
  fleet::Fleet fleet(cluster->nodes, fleet::NodeOptions{});
  const auto answers = fleet::all_or_throw(fleet.each("looking at the nodes", [](fleet::Node& node) {
    return from_json<launch::PrepAnswer>(node.ask("prep-look", Document::null(), kPrepLimit));
  }));
  std::vector<PreparedNode> nodes;
  for (std::size_t i = 0; i < answers.size(); ++i) nodes.push_back({fleet[i].name(), answers[i]});
  return nodes;
}

int list_preparations(Session& session) {
  Document list = Document::list();
  std::string text;
  bool lacks = false;
  for (const PreparedNode& node : ask_nodes(session)) {
    text += fmt::format("{}: {} free{}\n", node.name, to_string(node.answer.disk_free),
                        node.answer.architecture.empty() ? "" : ", GPU " + node.answer.architecture);
    Document needs = Document::list();
    for (const launch::PrepNeed& need : launch::evaluate_prep(node.name, node.answer)) {
      lacks = lacks || need.required;
      text +=
          fmt::format("  {} {}\n           fix: {}\n", need.required ? "missing " : "optional", need.what, need.fix);
      needs.items.push_back(Document::map({{"what", Document::string(need.what)},
                                           {"fix", Document::string(need.fix)},
                                           {"required", Document::boolean(need.required)}}));
    }
    list.items.push_back(Document::map({{"node", Document::string(node.name)},
                                        {"disk_free", Document::number(node.answer.disk_free.value)},
                                        {"needs", std::move(needs)}}));
  }
  if (session.json) {
    session.print_json(Document::map({{"nodes", std::move(list)}}));
  } else {
    session.print(text);
  }
  return lacks ? kExitFindings : kExitOk;
}

}  // namespace

CommandRow prep_command() {
  return {
      .name = "prep",
      .summary = "what takes long, before the day: what nodes lack, models, images, NCCL",
      .description =
          "Lists for every node of the cluster (or for this machine) what is missing to download models, to "
          "run engines in containers, and to build NCCL and nccl-tests for its GPU, each with what to do. "
          "Changes nothing. Exit status 1 where something is missing that is required.\n\n"
          "--checklist prints what to bring and to do before the day. --from copies models and container images "
          "from a drive (models/, images/, packages/, SHA256SUMS), compares every file with its hash, and brings "
          "them to all nodes over the rails.",
      .examples = {{"yoke prep", "what every node lacks"},
                   {"yoke prep --checklist --on 2xspark --page checklist.html", "what to bring, as a page to print"},
                   {"yoke prep --from /media/disk", "models and images from a drive"},
                   {"yoke prep model Qwen/Qwen3-32B /models/qwen3-32b", "download a model"}},
      .prepare = [](OptionTable& table) -> Action {
        auto day = std::make_shared<launch::DayOptions>();
        table.flag("--checklist", "what to bring and to do before the day, for the cluster or --on", day->checklist);
        table.value("--on", "MACHINES", "of the checklist, as for 'yoke plan'", day->on);
        table.value("--model", "MODEL", "of the checklist: a name of 'yoke plan models'", day->model);
        table.value("--format", "FORMAT", "of its weights", day->format);
        table.value("--hub", "ORG/NAME", "of the checklist: look up its size, and measure this line", day->hub_model);
        table.value("--page", "FILE", "of the checklist: also as a page to print", day->page);
        table.value("--from", "FOLDER", "copy models and images from a drive, verified", day->from);
        table.value("--to", "FOLDER", "where models go with --from (/models)", day->to);
        return [day](Session& session) {
          if (day->checklist) {
            return launch::print_checklist(
                session, *day, day->on || !find_cluster_file(session) ? std::nullopt : read_session_cluster(session));
          }
          return day->from ? launch::prep_from_drive(session, *day, read_session_cluster(session))
                           : list_preparations(session);
        };
      },
      .subcommands = {prep_model_command(), prep_image_command(), prep_nccl_command(), prep_python_command()},
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
