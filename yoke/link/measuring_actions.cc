#include "yoke/link/measuring_actions.h"

#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/link/flows.h"
#include "yoke/link/node_facts.h"
#include "yoke/link/perftest_run.h"
#include "yoke/link/ping_pong.h"

namespace yoke::link {
namespace {

struct Listeners {
  std::vector<Socket> sockets;
};

}  // namespace

Document report_rail_facts(const Document& question, agent::AgentContext&) {
  return to_json(inspect_node(from_json<std::vector<RailQuestion>>(question)));
}

Document listen_on_rails(const Document& question, agent::AgentContext& context) {
  std::vector<Socket>& listeners = context.state<Listeners>().sockets;
  listeners.clear();
  std::vector<int> ports;
  for (const RailPlace& place : from_json<std::vector<RailPlace>>(question)) {
    listeners.push_back(listen_on_rail(place));
    ports.push_back(listeners.back().local().port);
  }
  return to_document(ports);
}

Document move_on_rails(const Document& question, agent::AgentContext& context) {
  return to_json(move_bytes(context.state<Listeners>().sockets, from_json<FlowRequest>(question)));
}

Document answer_pings_on_rail(const Document& question, agent::AgentContext& context) {
  std::vector<Socket>& listeners = context.state<Listeners>().sockets;
  if (listeners.empty()) throw Error(ErrorCode::kInvalid, "nobody listens for pings");
  return to_json(answer_pings(listeners.front(), from_json<PingRequest>(question)));
}

Document ping_on_rail(const Document& question, agent::AgentContext&) {
  return to_json(ping(from_json<PingRequest>(question)));
}

Document run_perftest(const Document& question, agent::AgentContext&) {
  return to_document(run_perftests(from_json<PerftestRequest>(question)));
}

}  // namespace yoke::link
