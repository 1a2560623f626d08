// What a node tells of its halves before and after a measurement: state, counters, where its packets would really go,
// and whether RDMA can be used. Plain data; look_at_node() reads this machine.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/link/half_socket.h"
#include "yoke/link/interfaces.h"
#include "yoke/link/rdma_port.h"

namespace yoke {

struct HalfQuestion {
  HalfPlace place;
  std::string peer;  // the address of the other end
};

struct HalfFacts {
  std::optional<LinkInterface> interface;  // absent: there is none of this name
  std::optional<std::string> route;        // the interface by which packets to the other end leave; absent: none
  std::optional<RdmaPort> rdma;
};

struct NodeFacts {
  std::vector<HalfFacts> halves;  // as asked
  bool verbs = false;             // the kernel offers RDMA to programs: /dev/infiniband
  bool perftest = false;          // ib_write_bw and ib_write_lat are installed
  int cores = 1;
  std::optional<Bytes> memory_total;
  std::optional<Bytes> memory_available;
};

// What must be available before anything is measured. The buffers are small, but a machine that is at its end must not
// be pushed over it: unified memory freezes. A node that is small by nature is not at its end with half of it free.
Bytes memory_wanted(const NodeFacts& facts);

NodeFacts look_at_node(const std::vector<HalfQuestion>& questions);

Document to_json(const std::vector<HalfQuestion>& questions);
std::vector<HalfQuestion> half_questions_from_json(const Document& document);
Document to_json(const NodeFacts& facts);
NodeFacts node_facts_from_json(const Document& document);

}  // namespace yoke
