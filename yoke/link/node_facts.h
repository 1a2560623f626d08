// What a node tells of its rails before and after a measurement: state, counters, where its packets would really go,
// and whether RDMA can be used. Plain data; inspect_node() reads this machine.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/link/cabled_rails.h"
#include "yoke/link/interfaces.h"
#include "yoke/link/rail_socket.h"
#include "yoke/link/rdma_port.h"

namespace yoke::link {

struct RailQuestion {
  RailPlace place;
  std::string peer;  // the address of the other end
};

struct RailFacts {
  std::optional<LinkInterface> interface;  // absent: there is none of this name
  std::optional<std::string> route;        // the interface by which packets to the other end leave; absent: none
  std::optional<RdmaPort> rdma;
};

struct NodeFacts {
  std::vector<RailFacts> rails;    // as asked
  std::vector<CabledRail> cabled;  // all that have a cable
  bool verbs = false;              // the kernel offers RDMA to programs: /dev/infiniband
  bool perftest = false;           // ib_write_bw and ib_write_lat are installed
  int cores = 1;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_available;
};

// What must be available before anything is measured. The buffers are small, but a machine that is at its end must not
// be pushed over it: unified memory freezes. A node that is small by nature is not at its end with half of it free.
Bytes memory_wanted(const NodeFacts& facts);

NodeFacts inspect_node(const std::vector<RailQuestion>& questions);

Document to_json(const RailQuestion& question);
void from_json(const Document& document, RailQuestion& question);
Document to_json(const NodeFacts& facts);
void from_json(const Document& document, NodeFacts& facts);

}  // namespace yoke::link
