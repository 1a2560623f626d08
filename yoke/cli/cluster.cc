#include <fmt/format.h>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/fleet/fleet.h"
#include "yoke/lab/state.h"
#include "yoke/report/table.h"

namespace yoke::cli {

namespace {

CommandRow show_command() {
  return {.name = "show",
          .summary = "check the cluster file and print it in its canonical form",
          .description =
              "Reads the cluster file, checks it, and prints it back in its canonical form: the same cluster, "
              "every default written out. Nothing is contacted or changed.",
          .examples = {{"yoke cluster show", "cluster.yaml of this folder"},
                       {"yoke cluster show --cluster desk.yaml --json", "another file, for a script"}},
          .prepare = [](OptionTable&) -> Action {
            return [](Session& session) {
              // Nothing is contacted, so a lab's file is shown whether it runs or not.
              const spec::Cluster cluster =
                  session.lab ? lab::lab_cluster(lab::load_layout(*session.lab)) : load_session_cluster(session);
              if (session.json) {
                session.print_json(spec::to_json(cluster));
              } else {
                session.print(spec::print_cluster(cluster));
              }
              return kExitOk;
            };
          }};
}

}  // namespace

CommandRow cluster_command() {
  return {
      .name = "cluster",
      .summary = "print the cluster file; test whether its nodes can be reached",
      .description = "Looks at the cluster file, and whether its nodes can be reached.",
      .examples = {{"yoke cluster show", "check and print the file"}, {"yoke cluster reach", "try ssh to every node"}},
      .prepare = {},
      .subcommands = {show_command(), cluster_reach_command()}};
}

// yoke cluster reach: does ssh reach every node, without a question? With --copy the program is brought there too.

namespace {

struct ReachOptions {
  bool carry = false;
  Seconds timeout{10};
};

// ssh itself gives up connecting before we do: it knows whether anybody answered.
constexpr Seconds kLoginMore{2};

struct Reached {
  Seconds login;          // until the first command ended: connection, keys, login shell
  Seconds round_trip;     // of a command over the connection that is there
  std::string processor;  // uname -m
  std::string hostname;
  std::optional<std::string> program;  // where --copy put it
};

Reached reach(fleet::Node& node, const ReachOptions& options) {
  const auto timed = [](Seconds& time, const auto& action) {
    const Instant start = real_clock().now();
    action();
    time = to_seconds(real_clock().now() - start);
  };
  Reached reached;
  timed(reached.login, [&] { node.look(); });
  timed(reached.round_trip, [&] {
    const Outcome outcome = node.run({.argv = {"true"}, .timeout = options.timeout});
    if (!outcome.ok()) throw remote::remote_tool_error(remote::host_of(node.place()), "cannot run a command", outcome);
  });
  reached.processor = node.look().machine;
  reached.hostname = node.look().hostname;
  if (options.carry) {
    node.reach();  // it runs there
    reached.program = node.program();
  }
  return reached;
}

std::string as_text(const spec::Cluster& cluster, const std::vector<Result<Reached>>& results) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "address"},
                                  {.header = "login", .align = report::TextAlign::kRight},
                                  {.header = "next command", .align = report::TextAlign::kRight},
                                  {.header = "answer", .fit = report::ColumnFit::kShrinks}}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const spec::ClusterNode& node = cluster.nodes[i];
    if (const Result<Reached>& result = results[i]; result) {
      std::string answer = fmt::format("reached: {}, {}", result->hostname, result->processor);
      if (result->program) answer += ", yoke at " + *result->program;
      table.rows.push_back(
          {node.name, node.address, yoke::to_string(result->login), yoke::to_string(result->round_trip), answer});
    } else {
      const Error& error = result.error();
      table.rows.push_back(
          {node.name, node.address, "-", "-",
           fmt::format("{}{}{}", error.message(), error.hint().empty() ? "" : "; hint: ", error.hint())});
    }
  }
  return report::render_text(table);
}

Document as_json(const spec::Cluster& cluster, const std::vector<Result<Reached>>& results) {
  Document nodes = Document::list();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Document node = Document::map({{"name", Document::string(cluster.nodes[i].name)},
                                   {"address", Document::string(cluster.nodes[i].address)},
                                   {"reached", Document::boolean(results[i].has_value())}});
    if (const Result<Reached>& result = results[i]; result) {
      node.add("login", Document::number(result->login.value));
      node.add("round_trip", Document::number(result->round_trip.value));
      node.add("hostname", Document::string(result->hostname));
      node.add("processor", Document::string(result->processor));
      if (result->program) node.add("program", Document::string(*result->program));
    } else {
      node.add("code", Document::string(std::string(info(result.error().code()).name)));
      node.add("message", Document::string(result.error().message()));
      node.add("hint", Document::string(result.error().hint()));
    }
    nodes.items.push_back(std::move(node));
  }
  return Document::map({{"nodes", std::move(nodes)}});
}

int run_reach(Session& session, const ReachOptions& options) {
  if (options.timeout.value <= 0) throw Error(ErrorCode::kUsage, "--timeout must be above zero", "10s is usual");
  const spec::Cluster cluster = load_session_cluster(session);
  fleet::Fleet fleet(cluster.nodes,
                     {.ssh = {.connect_timeout = options.timeout, .login_timeout = options.timeout + kLoginMore}});
  const auto results = fleet.each("reaching the nodes", [&](fleet::Node& node) { return reach(node, options); });
  throw_if_interrupted();  // an ssh that Ctrl-C ended looks like a node that does not answer
  if (session.json) {
    session.print_json(as_json(cluster, results));
  } else {
    session.print(as_text(cluster, results));
  }
  for (const Result<Reached>& result : results) {
    if (!result) return result.error().exit_status();
  }
  return kExitOk;
}

}  // namespace

CommandRow cluster_reach_command() {
  return {.name = "reach",
          .summary = "does ssh reach every node, without asking anything?",
          .description =
              "Logs in to every node of the cluster file at once, as later commands will: without a password "
              "or any question. Prints how long the login took and a command after it. With --copy the "
              "running program is copied to nodes that lack it, under ~/.cache/yoke by its hash; nothing "
              "else is changed. The exit status is that of the first node that fails.",
          .examples = {{"yoke cluster reach", "every node of cluster.yaml"},
                       {"yoke cluster reach --copy --json", "and bring the program there; for a script"}},
          .prepare = [](OptionTable& table) -> Action {
            auto options = std::make_shared<ReachOptions>();
            table.flag("--copy", "copy this program to nodes that lack it", options->carry);
            table.value("--timeout", "TIME", "how long to wait for a node (10s unless given)", options->timeout);
            return [options](Session& session) { return run_reach(session, *options); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
