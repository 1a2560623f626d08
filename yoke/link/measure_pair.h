// The procedure of `yoke link test` for two nodes: facts, each rail alone in each direction, all rails together in one
// common window, both directions at once, latency, facts again. A rail that fails is reported and left out of what
// follows.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "yoke/link/link_result.h"
#include "yoke/link/pair_transport.h"
#include "yoke/link/pairs.h"

namespace yoke::link {

enum class TransportChoice { kAuto, kTcp, kRdma };
constexpr auto enum_names(TransportChoice) {
  return std::array{std::pair{"auto", TransportChoice::kAuto}, std::pair{"tcp", TransportChoice::kTcp},
                    std::pair{"rdma", TransportChoice::kRdma}};
}

struct MeasureOptions {
  Seconds time{2};  // of each phase
  int streams = 0;  // TCP connections for each flow; 0: as the expected rate suggests
  TransportChoice transport = TransportChoice::kAuto;
  std::optional<BitsPerSecond> expected;
  std::function<void(std::string_view what)> on_phase = {};  // what is measured next
};

PairResult measure_pair(fleet::Node& a, fleet::Node& b, const NodePair& pair, const MeasureOptions& options);

// Only the phases: what lies between the facts.
void measure_phases(PairTransport& transport, const NodePair& pair, const MeasureOptions& options, PairResult& result);

// How many phases there will be, for progress.
int phase_count(const NodePair& pair);

// Why RDMA cannot carry the test; empty where it can.
std::string why_no_rdma(const std::vector<PairRailFacts>& rails, const NodeFacts& a, const NodeFacts& b,
                        const std::string& a_name, const std::string& b_name);

}  // namespace yoke::link
