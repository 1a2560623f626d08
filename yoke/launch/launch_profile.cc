// What a launch brings from the nodes besides lines: traces of profilers. And what the site must give: modules.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"
#include "yoke/launch/launch_input.h"
#include "yoke/launch/modules.h"
#include "yoke/report/html.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kTraceLimit{4LL << 30};  // of one node, as it is kept in memory on its way

// A folder of a node as a tar file: traces are few, and compressed already.
void fetch_folder(const std::string& archive, const fs::path& target) {
  make_folder(target);
  const Outcome unpacked = run({.argv = {"tar", "-x", "--no-same-owner", "--no-same-permissions", "-C", target},
                                .input = archive,
                                .timeout = Seconds{600}});
  if (!unpacked.ok()) throw Error(ErrorCode::kUnavailable, "cannot unpack a profile: tar " + unpacked.describe());
}

std::string archive_of(fleet::Node* node, const std::string& folder) {
  const Command pack{
      .argv = {"sh", "-c", "tar -c -C \"$1\" --exclude yoke_profile.py . && rm -rf \"$1\"", "sh", folder},
      .timeout = Seconds{600},
      .output_limit = kTraceLimit};
  const Outcome packed = node ? node->run(pack) : run(pack);
  if (packed.truncated) throw Error(ErrorCode::kExhausted, "a profile is larger than " + to_string(kTraceLimit));
  if (!packed.ok()) throw Error(ErrorCode::kUnavailable, "cannot read a profile: tar " + packed.describe());
  return packed.out;
}

report::HtmlPage index_page(const fs::path& folder, const LaunchPlan& plan) {
  report::HtmlPage page{.title = fmt::format("Profile of {}", plan.engine.name)};
  report::Table table{
      .columns = {{.header = "node"}, {.header = "trace"}, {.header = "size", .align = report::TextAlign::kRight}}};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "index.html") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const fs::path relative = fs::relative(file, folder);
    table.rows.push_back({relative.begin()->native(), relative.native(),
                          to_string(Bytes{static_cast<std::int64_t>(fs::file_size(file))})});
  }
  page.blocks.push_back(std::move(table));
  page.blocks.push_back(report::HtmlParagraph{
      "Open *.json.gz with ui.perfetto.dev or chrome://tracing, *.nsys-rep with nsys-ui. Ranks that wait for another "
      "show it as a long all-reduce: compare the same step in the traces of all nodes."});
  return page;
}

}  // namespace

void collect_profiles(terminal::Session& session, const std::string& target, LaunchSetting& setting,
                      const LaunchPlan& plan) {
  const fs::path folder = target;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.of_node(i).empty()) continue;
    fleet::Node* const node = setting.fleet ? &(*setting.fleet)[i] : nullptr;
    const auto fetched =
        try_to([&] { fetch_folder(archive_of(node, plan.options.profile), folder / plan.nodes[i].name); });
    if (!fetched) log(LogLevel::kWarning, "{}: {}", plan.nodes[i].name, fetched.error().message());
  }
  make_folder(folder);
  write_file_atomically(folder / "index.html", report::render_html(index_page(folder, plan)));
  if (!session.json) session.print(fmt::format("Traces of all nodes: {}\n", (folder / "index.html").native()));
}

std::vector<spec::Finding> module_findings(const LaunchPlan& plan, fleet::Fleet& fleet) {
  std::vector<spec::Finding> findings;
  if (plan.options.modules.empty()) return findings;
  const std::string script = modules_check_text(plan.options.modules);
  const auto answers = fleet::all_or_throw(fleet.each("looking at the modules", [&](fleet::Node& node) {
    return node.run({.argv = {"bash", "-c", script}, .timeout = Seconds{60}});
  }));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].ok()) continue;
    const bool none = answers[i].exit_status == 3;
    std::string names = answers[i].out;
    std::replace(names.begin(), names.end(), '\n', ' ');
    const std::string missing(trim(names));
    findings.push_back({.rule = "launch-module-missing",
                        .severity = spec::Severity::kError,
                        .node = fleet[i].name(),
                        .subject = missing,
                        .what = none ? fmt::format("{} has no environment modules.", fleet[i].name())
                                     : fmt::format("{} cannot load: {}.", fleet[i].name(), printable(missing, 120)),
                        .evidence = none ? "There is no command 'module' in a shell of that node."
                                         : "'module -t list' does not name it after 'module load'.",
                        .consequence = "The engine would run with other libraries, or not at all.",
                        .fix = none ? "Leave out --modules, or install environment-modules or Lmod there"
                                    : fmt::format("On {}: module avail", fleet[i].name())});
  }
  return findings;
}

}  // namespace yoke::launch
