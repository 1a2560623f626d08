// yoke gameday: the whole story end to end, on the cluster or, without one, in a lab.
#include "yoke/gameday/gameday.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/gameday/summary.h"
#include "yoke/report/table.h"
#include "yoke/weights/model_folder.h"

namespace yoke::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kReportName = "gameday-report.html";

struct Arguments {
  std::vector<std::string> phases;
  std::optional<std::string> report;
  std::optional<std::string> model;
  bool list = false;
  bool interactive = false;
  bool keep = false;
  bool plain = false;
  std::string hardware;  // of a lab of its own
  int dcgm = 1;
};

// Several names may stand in one word, and the option may come more than once.
std::vector<std::string> phase_names(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    for (const std::string& name : split(word, ',')) names.emplace_back(trim(name));
  }
  return names;
}

int list_phases(const Session& session, const std::vector<const gameday::Phase*>& phases) {
  report::Table table{.columns = {{.header = "phase"}, {.header = "what"}, {.header = "needs"}}};
  Document list = Document::list();
  for (const gameday::Phase* phase : phases) {
    Document needs = Document::list();
    for (const std::string_view need : phase->needs) needs.items.push_back(Document::string(std::string(need)));
    table.rows.push_back(
        {std::string(phase->name), std::string(phase->title), fmt::format("{}", fmt::join(phase->needs, ", "))});
    list.items.push_back(Document::map({{"name", Document::string(std::string(phase->name))},
                                        {"title", Document::string(std::string(phase->title))},
                                        {"needs", std::move(needs)}}));
  }
  if (session.json) {
    session.print_json(Document::map({{"phases", std::move(list)}}));
  } else {
    session.print(report::render_text(table, report::for_output(report::kUnlimitedWidth)));
  }
  return kExitOk;
}

// Seen to be writable before minutes are spent.
fs::path report_file(const std::optional<std::string>& given) {
  if (!given && access(".", W_OK) != 0) return fs::temp_directory_path() / kReportName;
  const fs::path file = fs::absolute(given.value_or(kReportName));
  if (fs::is_directory(file)) {
    throw Error(ErrorCode::kUsage, fmt::format("--report: {} is a folder", file.native()),
                fmt::format("name a file in it: {}", (file / kReportName).native()));
  }
  if (access(file.parent_path().c_str(), W_OK) != 0)
    throw system_error(errno, fmt::format("cannot write {}", file.native()), "name another file with --report FILE");
  return file;
}

gameday::EnvironmentOptions environment_options(const Session& session, const Arguments& arguments) {
  gameday::EnvironmentOptions environment{
      .program = fs::read_symlink("/proc/self/exe"),
      .lab_kind = arguments.plain ? gameday::LabKind::kPlain : gameday::LabKind::kFull,
      .after = arguments.keep ? gameday::CleanUp::kKeep : gameday::CleanUp::kCleanUp};
  if (const auto file = find_cluster_file(session)) {
    const spec::Cluster cluster = spec::load_cluster(*file);
    // A lab's cluster.yaml that just lies here may be of a lab long gone: only where it is named is it meant.
    if (session.cluster_file || !cluster.lab) environment.cluster_file = fs::absolute(*file);
    if (environment.cluster_file) environment.lab = cluster.lab;
  }
  if (!arguments.hardware.empty()) environment.hardware = arguments.hardware;
  environment.dcgm_level = arguments.dcgm;
  if (environment.cluster_file && !arguments.hardware.empty()) {
    throw Error(
        ErrorCode::kUsage, "--hardware is for a lab of its own, and there is a cluster file",
        fmt::format("leave out --hardware, or begin in a folder without {}", environment.cluster_file->native()));
  }
  if (environment.cluster_file && arguments.plain) {
    throw Error(ErrorCode::kUsage, "--plain is for a lab of its own, and there is a cluster file",
                fmt::format("leave out --plain, or begin in a folder without {}", environment.cluster_file->native()));
  }
  // On a cluster only a model that was named is known to lie on every node.
  if (arguments.model || !environment.cluster_file || environment.lab) {
    environment.model = arguments.model ? weights::find_model_folder(*arguments.model) : weights::shipped_model();
  }
  return environment;
}

int run_gameday(Session& session, const Arguments& arguments) {
  const std::vector<const gameday::Phase*> phases = gameday::choose_phases(phase_names(arguments.phases));
  if (arguments.list) return list_phases(session, phases);
  if (session.json && arguments.interactive)
    throw Error(ErrorCode::kUsage, "--interactive and --json cannot both be given", "a conversation is not JSON");
  if (session.lab) {
    throw Error(ErrorCode::kUsage, "a game day takes no --lab", "name the lab's cluster file with --cluster FILE");
  }
  const fs::path report = report_file(arguments.report);
  gameday::GamedayOptions options{.environment = environment_options(session, arguments),
                                  .phases = phases,
                                  .finale = arguments.interactive ? gameday::Finale::kChat : gameday::Finale::kNone};
  if (!session.json) options.write = [&](std::string_view text) { session.print(text); };
  const gameday::GamedayResult result = gameday::run_gameday(options);
  write_file_atomically(report, report::render_html(gameday::gameday_page(result)));
  if (session.json) {
    Document document = gameday::to_json(result);
    document.add("report", Document::string(report.native()));
    session.print_json(document);
  } else {
    session.print(fmt::format("{}The report is {}\n", gameday::summary_text(result), report.native()));
  }
  return result.passed() ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow gameday_command() {
  return {
      .name = "gameday",
      .summary = "the whole story end to end, on the cluster or in a lab",
      .description =
          "Plays the story phase by phase, each with the commands that a person would type, their figures and a "
          "verdict: machines from the factory that find each other and are set up, ssh, both rails of the cable, "
          "the all-reduce, a model that one node refuses and all of them run, a rank killed in mid-answer, a rail "
          "pulled and a half slowed, half of the cable cut. Then a summary and an HTML page. "
          "Without a cluster file it starts a lab of two virtual Sparks, and leaves nothing of it; Ctrl-C cleans "
          "up at any moment. On a cluster the phases that only a lab can play are skipped. Exit status 1 where a "
          "phase failed.",
      .examples = {{"yoke gameday", "all of it; in a lab where there is no cluster.yaml"},
                   {"yoke gameday --list", "the phases"},
                   {"yoke gameday --phase prove,all-reduce --json", "two of them and what they need"},
                   {"yoke gameday --hardware b300", "in a lab of two servers with eight rails each"},
                   {"yoke gameday --interactive", "and at the end a conversation over both nodes"},
                   {"yoke gameday --cluster desk.yaml --model /data/llama", "on real machines"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<Arguments>();
        table.values("--phase", "NAME,…", "only these phases, and those that they need", arguments->phases);
        table.flag("--list", "list the phases", arguments->list);
        table.value("--report", "FILE", "where to write the page (gameday-report.html)", arguments->report);
        table.value("--model", "DIR", "the model (models/nano in a lab; on a cluster each node must have it)",
                    arguments->model);
        table.flag("--interactive", "end in a conversation with the model, before the clean-up",
                   arguments->interactive);
        table.flag("--keep", "leave the lab up", arguments->keep);
        table.choice("--hardware", "NAME", "of the lab: spark or b300 (spark)", {"spark", "b300"}, arguments->hardware);
        table.value("--dcgm", "LEVEL", "of NVIDIA's diagnostic on servers that have it, 1 to 4 (1; 0: none)",
                    arguments->dcgm, {0, 4});
        table.flag("--plain", "a lab of plain processes, for a machine without namespaces", arguments->plain);
        return [arguments](Session& session) { return run_gameday(session, *arguments); };
      }};
}

}  // namespace yoke::cli
