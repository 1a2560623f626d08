// How bytes cross between the two nodes of a pair: by TCP (flows.h, ping_pong.h) or by RDMA (perftest.h). The procedure
// around it (measure_pair.h) does not know which.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "yoke/fleet/node.h"
#include "yoke/link/link_result.h"
#include "yoke/link/pairs.h"

namespace yoke::link {

using PairNodes = std::array<fleet::Node*, 2>;

enum class Direction { kForward, kBackward };  // from the first node to the second, or back

struct RailFlow {
  std::size_t rail = 0;
  Direction direction = Direction::kForward;
};

class PairTransport {
 public:
  virtual ~PairTransport() = default;
  // All flows at once. Throws where one cannot be had.
  virtual LinkPhase move(LinkPhaseKind kind, const std::vector<RailFlow>& flows, Seconds time) = 0;
  virtual RailLatency latency(std::size_t rail) = 0;
};

// Both refer to nodes and pair, which must outlive them.
std::unique_ptr<PairTransport> make_tcp_transport(const PairNodes& nodes, const NodePair& pair, int streams);
std::unique_ptr<PairTransport> make_rdma_transport(const PairNodes& nodes, const NodePair& pair,
                                                   const std::vector<PairRailFacts>& facts);

}  // namespace yoke::link
