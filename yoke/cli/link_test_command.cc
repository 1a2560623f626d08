#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/link/link_text.h"
#include "yoke/report/given_commands.h"
#include "yoke/survey/link_evaluate.h"
#include "yoke/survey/links.h"

namespace yoke::cli {

namespace {

struct TestArguments {
  std::string seconds_text;
  std::optional<std::string> node, rail;
  std::string transport = "auto";
  int streams = 0;
  bool no_all_reduce = false;
};

void check(const TestArguments& arguments) {
  if (arguments.streams < 0 || arguments.streams > 64) {
    throw Error(ErrorCode::kUsage, fmt::format("--streams cannot be {}", arguments.streams), "1 to 64");
  }
}

Seconds time_of(const std::string& text) {
  if (text.empty()) return {2};
  const auto parsed = parse_seconds(text.find_first_not_of("0123456789.") == std::string::npos ? text + "s" : text);
  if (!parsed) throw Error(ErrorCode::kUsage, "--seconds: " + parsed.error().message(), "--seconds 2, or 500ms");
  if (parsed->value < 0.1 || parsed->value > 3600) {
    throw Error(ErrorCode::kUsage, fmt::format("--seconds cannot be {}", text), "0.1 to 3600");
  }
  return *parsed;
}

int measure(Session& session, const TestArguments& arguments) {
  check(arguments);
  const Seconds time = time_of(arguments.seconds_text);
  const spec::Cluster cluster = load_session_cluster(session);
  const std::vector<link::NodePair> pairs = link::pairs_of(cluster, {.node = arguments.node, .rail = arguments.rail});
  survey::LinkSurveyOptions options = survey::link_survey_of(cluster, pairs);
  options.measure = {.time = time,
                     .streams = arguments.streams,
                     .transport = from_json<link::TransportChoice>(Document::string(arguments.transport))};
  if (arguments.no_all_reduce) {
    options.no_collective = "--no-all-reduce was given";
  } else if (arguments.node || arguments.rail) {
    options.no_collective = "it would use all nodes and rails, and only some were asked for";
  }
  fleet::Fleet fleet(cluster.nodes, survey::nodes_in(pairs), {});  // only those that take part are reached
  link::LinkTestResult result = survey::survey_links(fleet, cluster, pairs, options);
  survey::evaluate_link_test(result, cluster, pairs);
  report::give_options(result.findings, session.given_options());
  if (session.json) {
    session.print_json(link::to_json(result));
  } else {
    session.print(link::link_test_text(result));
  }
  if (!result.findings.empty()) return kExitFindings;
  return result.withheld.empty() ? kExitOk : kExitUnmeasured;
}

}  // namespace

CommandRow link_test_command() {
  return {
      .name = "test",
      .summary = "measure every rail: bandwidth, latency, errors, and what it means",
      .description =
          "Measures what joins the nodes: each rail alone in each direction, all rails together in one window, then "
          "both directions at once; the latency of messages from 8 B to 64 KB; error counters before and after; the "
          "processor time it takes. By RDMA (perftest) where the machines have it, else by TCP, and then it says "
          "why. Last, a short real all-reduce separates a slow collective from a slow link. Each rail is measured on "
          "its own interface, whatever the routes say. The verdict is against fabric.rail_rate of the cluster file "
          "or the catalogue: exit status 0 healthy, 1 findings, 3 a rate fell short while the CPU was busy with other "
          "programs, so that it is not evaluated. Nothing is changed.",
      .examples = {{"yoke link test", "all rails between all nodes, about 20 s a pair"},
                   {"yoke link test --seconds 10 --rail A", "one rail, longer"},
                   {"yoke link test --node spark-2 --json", "what joins one node, for a script"}},
      .prepare = [](OptionTable& table) -> Action {
        auto arguments = std::make_shared<TestArguments>();
        table.value("--seconds", "N", "how long each measurement takes (2)", arguments->seconds_text);
        table.value("--rail", "RAIL", "only this rail: A, B, ... (all)", arguments->rail);
        table.value("--node", "NODE", "only what joins this node", arguments->node);
        table.choice("--transport", "KIND", "auto, tcp or rdma (auto)", {"auto", "tcp", "rdma"}, arguments->transport);
        table.value("--streams", "N", "TCP connections for each rail (1; 4 above 10 Gb/s)", arguments->streams);
        table.flag("--no-all-reduce", "leave out the all-reduce", arguments->no_all_reduce);
        return [arguments](Session& session) { return measure(session, *arguments); };
      },
      .place = CommandPlace::kHead};
}

// yoke link: the rails between the nodes, made and measured. Each subcommand has a file of its own.

CommandRow link_command() {
  return {.name = "link",
          .summary = "find, make and measure the network between the nodes",
          .description =
              "The nodes of a cluster are joined by rails: independent paths, two for each cable of a DGX Spark. "
              "'discover' sees which port is cabled to which and writes the cluster file; 'test' measures each alone "
              "and all together; 'setup' writes addresses, MTU and what goes with them, step "
              "by step, and 'undo' takes all of it back.",
          .examples = {{"yoke link discover 192.168.1.21 192.168.1.22",
                        "which ports are cabled to each other, as a cluster file"},
                       {"yoke link test", "bandwidth and latency of every rail"},
                       {"yoke link setup --dry-run", "what would be changed"},
                       {"yoke link undo", "as it was before"}},
          .prepare = {},
          .subcommands = {link_discover_command(), link_setup_command(), link_test_command(), link_undo_command()}};
}

}  // namespace yoke::cli
