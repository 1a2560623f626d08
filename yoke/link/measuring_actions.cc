#include "yoke/link/measuring_actions.h"

#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/link/flows.h"
#include "yoke/link/link_fields.h"
#include "yoke/link/node_facts.h"
#include "yoke/link/perftest_run.h"
#include "yoke/link/ping_pong.h"

namespace yoke {
namespace {

struct Listeners {
  std::vector<Socket> sockets;
};

}  // namespace

Document tell_half_facts(const Document& question, AgentContext&) {
  return to_json(look_at_node(half_questions_from_json(question)));
}

Document listen_on_halves(const Document& question, AgentContext& context) {
  std::vector<Socket>& listeners = context.state<Listeners>().sockets;
  listeners.clear();
  std::vector<int> ports;
  for (const HalfPlace& place : from_document<std::vector<HalfPlace>>(question)) {
    listeners.push_back(listen_on_half(place));
    ports.push_back(listeners.back().local().port);
  }
  return to_document(ports);
}

Document move_on_halves(const Document& question, AgentContext& context) {
  return to_json(move_bytes(context.state<Listeners>().sockets, flow_request_from_json(question)));
}

Document answer_pings_on_half(const Document& question, AgentContext& context) {
  std::vector<Socket>& listeners = context.state<Listeners>().sockets;
  if (listeners.empty()) throw Error(ErrorCode::kInvalid, "nobody listens for pings");
  return to_json(answer_pings(listeners.front(), ping_request_from_json(question)));
}

Document ping_on_half(const Document& question, AgentContext&) {
  return to_json(ping(ping_request_from_json(question)));
}

Document run_perftest(const Document& question, AgentContext&) {
  return to_json(run_perftests(perftest_request_from_json(question)));
}

}  // namespace yoke
