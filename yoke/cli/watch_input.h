// Where the observations of a watch come from: the nodes, a lab's head node, or a record.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/cli/command.h"
#include "yoke/watch/observation.h"

namespace yoke::cli {

struct WatchInput {
  Seconds interval{1};
  std::optional<std::string> replay = {};
  std::optional<double> speed = {};
  std::vector<std::string> engine_ports = {};

  Seconds reach_limit() const { return Seconds{15}; }  // until a node that is there has sent its first samples
};
void declare_watch_input(OptionTable& table, WatchInput& input);

struct OpenedWatch {
  watch::WatchPlan plan;
  std::unique_ptr<watch::ObservationSource> source;
};
OpenedWatch open_watch(const Session& session, const WatchInput& input);

// The command line by which a lab's head node streams.
std::vector<std::string> stream_arguments(const Session& session, const WatchInput& input);

}  // namespace yoke::cli
