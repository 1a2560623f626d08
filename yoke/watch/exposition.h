// The board as Prometheus reads it: the names that dashboards know (dcgm-exporter's for GPUs, node_exporter's for the
// machine) and our own for rails, engines and findings. Each series has the label `hostname`.
#pragma once
#include <string>

#include "yoke/watch/board.h"

namespace yoke::watch {

enum class Exposed {
  kAll,       // of each node what no exporter on it publishes already
  kOwn,       // only ours
  kTextfile,  // for node_exporter's textfile collector, which has its own names already
};
std::string exposition(const Board& board, Exposed exposed);

}  // namespace yoke::watch
