// yoke model sync: one folder on all nodes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/report/table.h"
#include "yoke/sync/sync.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

struct SyncArguments {
  std::string folder;
  std::optional<std::string> to, from, rail;
  bool dry_run = false;
};

std::string size_text(std::uint64_t bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

std::string rate_text(std::uint64_t bytes, Seconds time) {
  if (time.value <= 0) return "";
  return to_string(to_bits_per_second(BytesPerSecond{static_cast<double>(bytes) / time.value}));
}

int source_place(const spec::Cluster& cluster, fleet::Fleet& fleet, const std::optional<std::string>& from) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    names.push_back(fleet[i].name());
    if (from ? fleet[i].name() == *from : fleet[i].is_here()) return fleet[i].index();
  }
  if (from) {
    throw Error(ErrorCode::kUsage, fmt::format("the cluster has no node '{}'", printable(*from, 70)),
                suggest(*from, names, "nodes"));
  }
  throw Error(ErrorCode::kUsage, fmt::format("this machine is no node of cluster '{}'", cluster.name),
              fmt::format("name the node that has the folder: --from {}", names.front()));
}

Document report_json(const sync::SyncReport& report, const sync::SyncOptions& options) {
  const auto number = [](std::uint64_t value) { return Document::number(static_cast<std::int64_t>(value)); };
  Document nodes = Document::list();
  for (const sync::SyncedNode& node : report.nodes) {
    Document rails = Document::list();
    for (const sync::RailShare& rail : node.rails) {
      rails.items.push_back(Document::map({{"rail", Document::string(rail.name)},
                                           {"bytes", number(rail.bytes)},
                                           {"problem", Document::string(rail.problem)}}));
    }
    nodes.items.push_back(Document::map({{"node", Document::string(node.name)},
                                         {"from", Document::string(node.from)},
                                         {"files", number(node.files)},
                                         {"bytes", number(node.bytes)},
                                         {"seconds", Document::number(node.time.value)},
                                         {"damaged", number(node.damaged)},
                                         {"rails", std::move(rails)}}));
  }
  return Document::map({{"folder", Document::string(options.folder)},
                        {"to", Document::string(options.to)},
                        {"files", number(report.files)},
                        {"bytes", number(report.bytes)},
                        {"copied", Document::boolean(!options.dry_run)},
                        {"nodes", std::move(nodes)}});
}

std::string report_text(const sync::SyncReport& report, const sync::SyncOptions& options) {
  std::string text = fmt::format("{}: {} files, {}\n", options.folder, report.files, size_text(report.bytes));
  for (const sync::SyncedNode& node : report.nodes) {
    if (node.files == 0) {
      text += fmt::format("{}: equal, every piece compared\n", node.name);
      continue;
    }
    text += fmt::format("{}: {} of {} file{} {} from {}", node.name, size_text(node.bytes), node.files,
                        node.files == 1 ? "" : "s", options.dry_run ? "to copy" : "copied", node.from);
    if (!options.dry_run) text += fmt::format(" in {}, {}", to_string(node.time), rate_text(node.bytes, node.time));
    text += '\n';
    for (const sync::RailShare& rail : node.rails) {
      text += fmt::format("  rail {}  {}{}\n", rail.name, size_text(rail.bytes),
                          rail.problem.empty() ? "" : "; " + rail.problem);
    }
    if (node.damaged > 0) {
      text += fmt::format("  {} piece{} arrived damaged and went again: see 'yoke check' for the error counters\n",
                          node.damaged, node.damaged == 1 ? "" : "s");
    }
  }
  if (options.dry_run) text += "Nothing was copied: this was a dry run.\n";
  return text;
}

int run_sync(Session& session, const SyncArguments& arguments) {
  const spec::Cluster cluster = load_session_cluster(session);
  fleet::Fleet fleet(cluster.nodes, fleet::NodeOptions{});
  const std::string folder = fs::absolute(arguments.folder).lexically_normal().native();
  sync::SyncOptions options{.folder = folder,
                            .to = arguments.to.value_or(folder),
                            .source = source_place(cluster, fleet, arguments.from),
                            .rail = arguments.rail,
                            .dry_run = arguments.dry_run};
  for (std::string* path : {&options.folder, &options.to}) {
    while (path->size() > 1 && path->ends_with('/')) path->pop_back();
  }
  if (!fs::path(options.to).is_absolute()) {
    throw Error(ErrorCode::kUsage, fmt::format("--to must be a path from the root, not '{}'", printable(options.to)),
                "such as --to /models/name");
  }
  const sync::SyncReport report = sync::sync_folder(cluster, fleet, options);
  if (session.json) {
    session.print_json(report_json(report, options));
  } else {
    session.print(report_text(report, options));
  }
  return kExitOk;
}

}  // namespace

CommandRow model_sync_command() {
  return {
      .name = "sync",
      .summary = "copy a model folder to all nodes over the rails, resumed and verified",
      .description =
          "Copies a folder from one node to all others of the cluster, over every rail at once. Files that are there "
          "already are compared piece by piece by hash at both ends, and only pieces that differ are sent: so a copy "
          "that was cut continues, and a damaged file is mended. Every piece is checked when it arrives. New content "
          "goes into FOLDER.partial, and files get their names when all are complete.\n\n"
          "The folder has the same path on all nodes unless --to is given. Hidden files are left out. Files that only "
          "the other nodes have stay there. A node without a rail to the source gets the folder from one that has.",
      .examples = {{"yoke model sync /models/llama-3.1-405b-int4", "from this node to all others"},
                   {"yoke model sync /models/llama-3.1-405b-int4 --dry-run", "compare only"},
                   {"yoke model sync /data/nano --from spark-2 --to /models/nano", "from another, to another path"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<SyncArguments>();
        table.positional("FOLDER", "the folder, as the node that has it names it", arguments->folder,
                         Presence::kRequired);
        table.value("--from", "NODE", "the node that has it (the one we are on)", arguments->from);
        table.value("--to", "PATH", "where it shall be on the others (the same path)", arguments->to);
        table.value("--rail", "NAME", "only this rail, such as A (all)", arguments->rail);
        table.flag("--dry-run", "compare and print what would be copied", arguments->dry_run);
        return [arguments](Session& session) { return run_sync(session, *arguments); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
