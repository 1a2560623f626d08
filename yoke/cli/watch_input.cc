#include "yoke/cli/watch_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "yoke/base/log.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/lab_head.h"
#include "yoke/watch/node_streams.h"
#include "yoke/watch/piped_source.h"
#include "yoke/watch/record_reader.h"
#include "yoke/watch/sampler.h"

namespace yoke::cli {
namespace {

std::vector<int> ports_of(const WatchInput& input) {
  std::vector<int> ports;
  for (const std::string& text : input.engine_ports) {
    int port = 0;
    const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (failure != std::errc{} || rest != text.data() + text.size() || port < 1 || port > 65535) {
      throw Error(ErrorCode::kUsage, fmt::format("--engine-port: '{}' is no port", printable(text, 20)), "8000 is one");
    }
    ports.push_back(port);
  }
  return ports;
}

// Without a cluster file: this machine alone.
spec::Cluster cluster_of_this_machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  spec::Cluster cluster;
  cluster.name = name.data();
  cluster.nodes.push_back({.name = name.data(), .address = "127.0.0.1"});
  return cluster;
}

OpenedWatch open_record(const WatchInput& input) {
  watch::RecordReader record(*input.replay);
  if (record.damaged() > 0) {
    log(LogLevel::kWarning, "{}: {} damaged lines were left out", *input.replay, record.damaged());
  }
  watch::WatchPlan plan = record.plan();
  return {std::move(plan), std::make_unique<watch::RecordSource>(std::move(record), input.speed.value_or(1))};
}

}  // namespace

void declare_watch_input(OptionTable& table, WatchInput& input) {
  table.value("--interval", "TIME", "between two samples of a node (1s)", input.interval,
              {watch::kMinInterval, watch::kMaxInterval});
  table.value("--replay", "FILE", "show a record instead", input.replay);
  table.value("--speed", "X", "of the replay: 2 is twice as fast, 0 is at once (1)", input.speed, {0, 1000});
  table.values("--engine-port", "P", "where engines answer /metrics (8000, 8001, 8080, 30000; may be repeated)",
               input.engine_ports);
}

std::vector<std::string> stream_arguments(const Session& session, const WatchInput& input) {
  std::vector<std::string> arguments = {"watch", "--stream", "--interval", exact(input.interval)};
  for (const std::string& port : input.engine_ports) arguments.insert(arguments.end(), {"--engine-port", port});
  if (session.verbose) arguments.emplace_back(session.protocol ? "-vv" : "-v");
  return arguments;
}

OpenedWatch open_watch(const Session& session, const WatchInput& input) {
  if (input.replay) return open_record(input);
  const std::vector<int> ports = ports_of(input);
  if (is_about_lab(session)) {
    load_lab(session, lab_meant(session, std::nullopt));  // throws where it does not run
    std::vector<std::string> argv = {"/proc/self/exe"};
    const std::vector<std::string> arguments = stream_arguments(session, input);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    if (session.lab) argv.insert(argv.end(), {"--lab", *session.lab});
    if (session.cluster_file) argv.insert(argv.end(), {"--cluster", *session.cluster_file});
    auto source = std::make_unique<watch::PipedSource>(Command{.argv = std::move(argv)});
    watch::WatchPlan plan = source->plan();
    return {std::move(plan), std::move(source)};
  }
  const auto cluster = read_session_cluster(session);
  watch::WatchPlan plan{.cluster = cluster ? *cluster : cluster_of_this_machine(), .interval = input.interval};
  auto source = std::make_unique<watch::NodeStreams>(plan, watch::StreamOptions{.engine_ports = ports});
  return {std::move(plan), std::move(source)};
}

}  // namespace yoke::cli
