// yoke link discover: the nodes, how they are cabled, and the cluster file that says so.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <mutex>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/lab/enter.h"
#include "yoke/lab/node_access.h"
#include "yoke/lab/state.h"
#include "yoke/link/beacon_exchange.h"
#include "yoke/link/link_text.h"
#include "yoke/report/given_commands.h"
#include "yoke/spec/cluster_rules.h"
#include "yoke/survey/link_evaluate.h"
#include "yoke/terminal/typed_input.h"

namespace yoke::cli {
namespace fs = std::filesystem;
namespace {

// In a lab the command runs on the head node, whose files are its own: this names the file there by which the cluster
// file comes back to the one who asked.
constexpr const char* kHandOver = "YOKE_DISCOVER_HAND_OVER";
constexpr Seconds kAnnounceTime{600};

struct DiscoverArguments {
  std::vector<std::string> addresses;
  std::optional<std::string> user, name, output, seconds_text;
  bool force = false, new_addresses = false, announce = false;
};

Seconds time_of(const DiscoverArguments& arguments) {
  if (!arguments.seconds_text) return arguments.announce ? kAnnounceTime : Seconds{3};
  const std::string& text = *arguments.seconds_text;
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  const auto parsed = parse_seconds(bare ? text + "s" : text);
  if (!parsed) throw Error(ErrorCode::kUsage, "--seconds: " + parsed.error().message(), "--seconds 3, or 500ms");
  if (parsed->value < 0.2 || parsed->value > 3600) {
    throw Error(ErrorCode::kUsage, fmt::format("--seconds cannot be {}", printable(text, 40)),
                "0.2 to 3600; 3 is usual");
  }
  return *parsed;
}

// user@address and address:port are what ssh and scp users write.
spec::ClusterNode machine_of(const std::string& text, const DiscoverArguments& arguments) {
  spec::ClusterNode machine{.name = "", .address = text, .user = arguments.user};
  if (const auto at = text.find('@'); at != std::string::npos) {
    machine.user = text.substr(0, at);
    machine.address = text.substr(at + 1);
  }
  if (machine.address.empty() || machine.address.front() == '-' || text.front() == '@' ||
      machine.address.find_first_of("/ ,;") != std::string::npos) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' is no address", printable(text, 60)),
                "give host names or IP addresses, with spaces between: yoke link discover 192.168.1.21 192.168.1.22");
  }
  return machine;
}

std::optional<spec::Cluster> known_cluster(const Session& session) {
  const auto file = find_cluster_file(session);
  return file ? std::optional(spec::load_cluster(*file)) : std::nullopt;
}

link::DiscoverOptions options_of(const Session& session, const DiscoverArguments& arguments) {
  link::DiscoverOptions options{.machines = {}, .user = arguments.user, .time = time_of(arguments)};
  if (arguments.new_addresses) options.adopt.addresses = link::AddressChoice::kPropose;
  for (const std::string& text : arguments.addresses) options.machines.push_back(machine_of(text, arguments));
  for (std::size_t i = 0; i < options.machines.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (options.machines[i].address != options.machines[j].address) continue;
      throw Error(ErrorCode::kUsage, fmt::format("{} is given twice", options.machines[i].address),
                  "give each machine once");
    }
  }
  // The file that is there counts where nothing else is said, or where it is about these very machines.
  std::optional<spec::Cluster> known = known_cluster(session);
  const bool about_others =
      known && std::any_of(options.machines.begin(), options.machines.end(), [&](const auto& m) {
        return std::none_of(known->nodes.begin(), known->nodes.end(),
                            [&](const spec::ClusterNode& node) { return node.address == m.address; });
      });
  if (!known || about_others) {
    if (arguments.name) options.adopt.known = spec::Cluster{.name = *arguments.name};
    return options;
  }
  if (options.machines.empty()) {
    options.with_this_machine = false;  // the file says who is part
    for (spec::ClusterNode node : known->nodes) {
      if (arguments.user) node.user = arguments.user;
      node.rails.clear();
      options.machines.push_back(std::move(node));
    }
  }
  if (arguments.name) known->name = *arguments.name;
  options.adopt.known = std::move(known);
  return options;
}

// The work, in a thread, and meanwhile a line that lives.
link::DiscoverResult discover_with_progress(link::DiscoverOptions options) {
  std::mutex mutex;
  std::string step = "looking at this machine";
  options.on_step = [&](std::string_view what) {
    const std::lock_guard lock(mutex);
    step = what;
  };
  fleet::SudoPassword password([&](const std::string& node) {
    const std::lock_guard lock(mutex);  // the line rests meanwhile
    return terminal::read_secret(fmt::format("Password for sudo on {} and the others (none: without beacons): ", node));
  });
  if (isatty(STDIN_FILENO)) options.password = &password;
  Progress progress("discovering", 0);
  auto work = std::async(std::launch::async, [&] { return link::discover_cluster(options); });
  while (work.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    const std::lock_guard lock(mutex);
    progress.update(0, step);
  }
  return work.get();
}

void refuse_to_overwrite(const DiscoverArguments& arguments) {
  if (!arguments.output) return;
  std::error_code failure;
  if (fs::is_directory(*arguments.output, failure)) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' is a folder", printable(*arguments.output, 80)),
                "name a file: -o cluster.yaml");
  }
  if (arguments.force || !fs::exists(*arguments.output, failure)) return;
  throw Error(ErrorCode::kConflict, fmt::format("'{}' is there already", printable(*arguments.output, 80)),
              "--force replaces it; without -o the cluster file is printed");
}

int exit_status(const std::vector<spec::Finding>& findings) {
  const bool faulty = std::any_of(findings.begin(), findings.end(), [](const spec::Finding& finding) {
    return finding.severity == spec::Severity::kError;
  });
  return faulty ? kExitFindings : kExitOk;
}

std::string written_text(const std::string& file) {
  return fmt::format("\nThe cluster file is {}.\nNext: yoke link setup{}\n", file,
                     file == "cluster.yaml" ? "" : " --cluster " + file);
}

int discover(Session& session, const DiscoverArguments& arguments) {
  const link::DiscoverResult result = discover_with_progress(options_of(session, arguments));
  std::vector<spec::Finding> findings = survey::evaluate_discovery(result);
  report::give_options(findings, session.given_options());
  const std::optional<spec::Cluster>& cluster = result.discovery.cluster;
  const char* hand_over = lab::in_node() ? std::getenv(kHandOver) : nullptr;
  if (cluster && arguments.output) write_file_atomically(*arguments.output, spec::print_cluster(*cluster));
  if (cluster && hand_over) write_file_atomically(hand_over, spec::print_cluster(*cluster));
  if (session.json) {
    session.print_json(link::discovery_json(result, findings));
    return exit_status(findings);
  }
  session.print(link::discovery_text(result, findings));
  if (cluster && arguments.output) session.print(written_text(*arguments.output));
  if (cluster && !arguments.output && !hand_over) {
    session.print("\nThe cluster file (-o cluster.yaml writes it):\n\n" + spec::print_cluster(*cluster));
  }
  return exit_status(findings);
}

int announce(Session& session, const DiscoverArguments& arguments) {
  if (!arguments.addresses.empty() || arguments.output) {
    throw Error(ErrorCode::kUsage, "--announce takes neither addresses nor a file",
                "it makes this machine known to a 'yoke link discover' on another");
  }
  const spec::Machine machine = link::inspect_interfaces(std::nullopt);
  const std::vector<link::Beacon> own =
      link::beacons_of(machine, link::read_node_identity(machine), link::management_address(machine));
  if (own.empty()) {
    throw Error(ErrorCode::kUnsupported, "this machine has no fast interfaces to announce itself on",
                "run it on one of the nodes");
  }
  const Seconds time = time_of(arguments);
  std::vector<std::string> interfaces;
  for (const link::Beacon& beacon : own) interfaces.push_back(beacon.interface);
  if (!session.json) {
    session.print(fmt::format("{} announces itself for {} on {}; Ctrl-C ends it\n", own.front().hostname,
                              yoke::to_string(time), fmt::join(interfaces, ", ")));
  }
  Document heard = Document::list();
  link::exchange_beacons(own, time, [&](const link::HeardBeacon& one) {
    if (session.json) {
      heard.items.push_back(
          Document::map({{"interface", Document::string(one.interface)}, {"beacon", link::to_json(one.beacon)}}));
    } else {
      session.print(fmt::format("heard {} ({}) on {}\n", one.beacon.hostname, one.beacon.interface, one.interface));
    }
  });
  if (session.json) session.print_json(Document::map({{"received", std::move(heard)}}));
  return kExitOk;
}

// The same command, for the head node of a lab.
std::vector<std::string> words_of(const Session& session, const DiscoverArguments& arguments) {
  std::vector<std::string> words = {"link", "discover"};
  words.insert(words.end(), arguments.addresses.begin(), arguments.addresses.end());
  const auto add = [&](const char* option, const std::optional<std::string>& value) {
    if (value) words.insert(words.end(), {option, *value});
  };
  add("--user", arguments.user);
  add("--name", arguments.name);
  add("--seconds", arguments.seconds_text);
  if (arguments.new_addresses) words.emplace_back("--new-addresses");
  if (arguments.announce) words.emplace_back("--announce");
  if (session.json) words.emplace_back("--json");
  if (session.quiet) words.emplace_back("--quiet");
  return words;
}

// On the head node of a lab, where that is meant; what it hands over is written here.
std::optional<int> discover_in_lab(Session& session, const DiscoverArguments& arguments) {
  if (lab::in_node()) return std::nullopt;
  const std::optional<std::string> lab = session.lab              ? session.lab
                                         : known_cluster(session) ? known_cluster(session)->lab
                                                                  : std::nullopt;
  if (!lab) return std::nullopt;
  const lab::LabLayout layout = load_lab(session, *lab);
  if (layout.plain) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the nodes of lab '{}' have no cables: they are plain processes", *lab),
                "discovery needs a lab with namespaces: 'yoke lab up' as root");
  }
  const std::string file = fmt::format("/run/yoke-lab/discovered-{}.yaml", random_token_hex(6));
  if (arguments.output) setenv(kHandOver, file.c_str(), 1);
  const std::optional<int> status = run_on_lab_head(session, words_of(session, arguments));
  if (!arguments.output) return status;
  const auto access = try_to([&] { return lab::NodeAccess(*lab, layout.nodes.front()); });
  const std::optional<std::string> found = access ? access->read(file) : std::nullopt;
  if (!found) return status;  // nothing was found: it said why
  write_file_atomically(*arguments.output, *found);
  access->remove(file);
  if (!session.json) session.print(written_text(*arguments.output));
  return status;
}

int run_discover(Session& session, const DiscoverArguments& arguments) {
  time_of(arguments);
  if (arguments.force && !arguments.output) {
    throw Error(ErrorCode::kUsage, "--force without -o has nothing to replace", "-o cluster.yaml --force");
  }
  if (arguments.name && !spec::is_plain_name(*arguments.name)) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' cannot be a cluster's name", printable(*arguments.name, 70)),
                "use letters, digits, '-', '_' and '.', at most 63, with a letter or digit first");
  }
  refuse_to_overwrite(arguments);
  if (const auto status = discover_in_lab(session, arguments)) return *status;
  return arguments.announce ? announce(session, arguments) : discover(session, arguments);
}

}  // namespace

CommandRow link_discover_command() {
  return {
      .name = "discover",
      .summary = "find the nodes and their cables, and write the cluster file",
      .description =
          "Reaches the machines by ssh and lets all of them send beacons on their fast interfaces and listen: so it "
          "sees which port and rail is cabled to which, without any address. Machines are those named, or else the "
          "nodes of the cluster file, or else those whose beacons are heard here (start 'yoke link discover "
          "--announce' on them). A beacon only proposes: a machine counts when ssh reaches it and knows its host key. "
          "This machine is the head where it has fast interfaces and is not named. Addresses that are there are "
          "adopted, also those made by other tools, with advice; where there are none, or with --new-addresses, new "
          "ones are "
          "proposed. Nothing is changed on any machine. Beacons need root (or sudo without a password); without, "
          "the cabling is inferred from addresses. Exit status 1 where a cable or rail does not work.",
      .examples = {{"yoke link discover 192.168.1.21 192.168.1.22 -o cluster.yaml", "two machines, by address"},
                   {"yoke link discover", "those of cluster.yaml, or who announces itself"},
                   {"yoke link discover --announce", "on each of the other machines, before that"},
                   {"yoke link discover --new-addresses -o cluster.yaml --force", "with new addresses, for setup"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<DiscoverArguments>();
        table.positionals("ADDRESS", "where ssh reaches a machine: its management address, or user@address",
                          arguments->addresses, Presence::kOptional);
        table.value("--user", "USER", "log in as this user", arguments->user);
        table.value("--seconds", "N", "how long to send and listen (3; 600 with --announce)", arguments->seconds_text);
        table.value("-o,--output", "FILE", "write the cluster file there", arguments->output);
        table.flag("--force", "replace FILE where it is there already", arguments->force);
        table.value("--name", "NAME", "the cluster's name", arguments->name);
        table.flag("--new-addresses", "propose new addresses even where there are some", arguments->new_addresses);
        table.flag("--announce", "only make this machine known to a discovery elsewhere", arguments->announce);
        return [arguments](Session& session) { return run_discover(session, *arguments); };
      }};
}

}  // namespace yoke::cli
