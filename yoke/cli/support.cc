// yoke support: one file to attach to a ticket, with what all nodes are and what was found, without secrets.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/check/redact.h"
#include "yoke/check/rule.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/report/findings_text.h"
#include "yoke/survey/node_survey.h"
#include "yoke/survey/survey.h"

namespace yoke::cli {
namespace fs = std::filesystem;
namespace {

struct SupportOptions {
  std::string out = "yoke-support.tar.gz";
  std::vector<std::string> logs;
  Seconds timeout{20};
};

std::vector<std::string> people(const std::optional<spec::Cluster>& cluster) {
  std::vector<std::string> names;
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    const char* const name = std::getenv(variable);
    if (name && *name && std::string_view(name) != "root") names.emplace_back(name);
  }
  for (const spec::ClusterNode& node : cluster ? cluster->nodes : std::vector<spec::ClusterNode>{}) {
    if (node.user && *node.user != "root") names.push_back(*node.user);
  }
  return names;
}

class Bundle {
 public:
  Bundle(fs::path folder, std::vector<std::string> names) : folder_(std::move(folder)), names_(std::move(names)) {}
  // What may be a secret, an address of the world or a person's name is left out.
  void add(const std::string& path, const std::string& text) { write(path, check::redact(text, names_)); }
  // Captures leave out serial numbers and secrets themselves, and must stay readable for `yoke check --root`: of them
  // only the folders of people are renamed.
  void add_capture(const std::string& path, std::string text) {
    for (const std::string& name : names_) {
      const std::string home = "/home/" + name;
      for (std::size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1)) {
        text.replace(at, home.size(), "/home/user");
      }
    }
    write(path, text);
  }
  const std::vector<std::string>& files() const { return files_; }

 private:
  void write(const std::string& path, const std::string& text) {
    const fs::path file = folder_ / path;
    make_folder(file.parent_path(), 0700);
    write_file_atomically(file, text);
    files_.push_back(path);
  }

  fs::path folder_;
  std::vector<std::string> names_;
  std::vector<std::string> files_;
};

void add_capture(Bundle& bundle, const std::string& node, const Document& files) {
  for (const auto& [name, text] : files.fields) {
    const bool plain = name.find('/') == std::string::npos && name.size() < 40;
    if (plain) bundle.add_capture("nodes/" + node + "/" + name, text.text);
  }
}

struct Gathered {
  spec::Survey facts;
  std::vector<std::string> failures;
};

Gathered gather(const std::optional<spec::Cluster>& cluster, Seconds timeout, Bundle& bundle) {
  if (!cluster) {
    Gathered gathered{survey::survey_here(survey::Canary::kNotMeasured), {}};
    add_capture(bundle, gathered.facts.nodes.front().name, survey::capture_files());
    return gathered;
  }
  fleet::Fleet fleet(cluster->nodes, survey::survey_login(timeout));
  Gathered gathered{survey::survey_nodes(fleet, *cluster, timeout, survey::Canary::kNotMeasured), {}};
  const auto captures = fleet.each("capturing the nodes",
                                   [&](fleet::Node& node) { return node.ask("capture", Document::null(), timeout); });
  for (std::size_t i = 0; i < captures.size(); ++i) {
    if (captures[i]) {
      add_capture(bundle, fleet[i].name(), *captures[i]);
    } else {
      gathered.failures.push_back(fmt::format("{}: {}", fleet[i].name(), captures[i].error().message()));
    }
  }
  return gathered;
}

int make_bundle(Session& session, const SupportOptions& options) {
  if (!options.out.ends_with(".tar.gz")) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' does not end in .tar.gz", printable(options.out, 200)),
                "such as -o support.tar.gz");
  }
  std::error_code ignored;
  if (fs::exists(options.out, ignored)) {
    throw Error(ErrorCode::kConflict, fmt::format("'{}' is there already", printable(options.out, 200)),
                "name another file, or remove it");
  }
  const auto cluster = read_session_cluster(session);
  const ScratchDir scratch("yoke-support");
  Bundle bundle(scratch.path() / "yoke-support", people(cluster));
  const Gathered gathered = gather(cluster, options.timeout, bundle);
  const std::vector<spec::Finding> findings = check::evaluate(gathered.facts);
  bundle.add("findings.txt", report::findings_text(findings));
  bundle.add("findings.json", print_json(report::findings_json(findings)) + "\n");
  bundle.add("survey.json", print_json(spec::to_json(gathered.facts)) + "\n");
  if (cluster) bundle.add("cluster.yaml", spec::print_cluster(*cluster));
  for (std::size_t i = 0; i < options.logs.size(); ++i) {
    const std::string name = fs::path(options.logs[i]).filename().native();
    bundle.add(fmt::format("logs/{}-{}", i + 1, name), read_file(options.logs[i], Bytes{limits::kLogBytes}));
  }
  std::string about = fmt::format("yoke {}\nnodes: {}, findings: {}, logs: {}\n", build_info().version,
                                  gathered.facts.nodes.size(), findings.size(), options.logs.size());
  for (const std::string& failure : gathered.failures) about += "not captured: " + failure + "\n";
  bundle.add("README.txt", about);
  run_or_throw(
      {.argv = {"tar", "-czf", fs::absolute(options.out).native(), "-C", scratch.path().native(), "yoke-support"},
       .timeout = Seconds{120}});
  if (session.json) {
    Document files = Document::list();
    for (const std::string& file : bundle.files()) files.items.push_back(Document::string(file));
    session.print_json(Document::map({{"file", Document::string(options.out)}, {"files", std::move(files)}}));
  } else {
    session.print(
        fmt::format("{}: {} files of {} nodes, {} findings{}. Read it before you send it.\n", options.out,
                    bundle.files().size(), gathered.facts.nodes.size(), findings.size(),
                    gathered.failures.empty() ? "" : fmt::format(", {} not captured", gathered.failures.size())));
  }
  return gathered.failures.empty() ? kExitOk : kExitFindings;
}

}  // namespace

CommandRow support_command() {
  return {
      .name = "support",
      .summary = "one file for a ticket: captures of all nodes, findings, logs, without secrets",
      .description =
          "Writes the captures of all nodes (or of this machine, without a cluster file), what 'yoke check "
          "--no-measure' finds, the cluster file and the logs that you name into one archive. Captures are as 'yoke "
          "probe --capture' makes them: without serial numbers and secrets, with MAC and IP addresses, and 'yoke "
          "check --root' reads them. From all else tokens, passwords, serial numbers, public addresses, the machines' "
          "own half of MAC addresses and names of users are left out.",
      .examples = {{"yoke support -o support.tar.gz", "all nodes of cluster.yaml"},
                   {"yoke support -o support.tar.gz --log job.log", "with the log of a job"}},
      .prepare = [](OptionTable& table) -> Action {
        auto options = std::make_shared<SupportOptions>();
        table.value("-o,--output", "FILE", "the archive to write (yoke-support.tar.gz)", options->out);
        table.values("--log", "FILE", "a log to add, such as NCCL's (may be repeated)", options->logs);
        table.value("--timeout", "TIME", "how long to wait for a node (20s unless given)", options->timeout);
        return [options](Session& session) { return make_bundle(session, *options); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
