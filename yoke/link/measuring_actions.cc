#include "yoke/link/measuring_actions.h"

#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/link/flows.h"
#include "yoke/link/link_fields.h"
#include "yoke/link/node_facts.h"
#include "yoke/link/perftest_run.h"
#include "yoke/link/ping_pong.h"

namespace yoke {
namespace {

Document listen_on(std::vector<Socket>& listeners, const Document& body) {
  listeners.clear();
  std::vector<int> ports;
  for (const HalfPlace& place : from_document<std::vector<HalfPlace>>(body)) {
    listeners.push_back(listen_on_half(place));
    ports.push_back(listeners.back().local().port);
  }
  return to_document(ports);
}

}  // namespace

AgentActions measuring_actions() {
  auto listeners = std::make_shared<std::vector<Socket>>();
  AgentActions actions;
  actions["facts"] = [](const Document& body) { return to_json(look_at_node(half_questions_from_json(body))); };
  actions["listen"] = [=](const Document& body) { return listen_on(*listeners, body); };
  actions["move"] = [=](const Document& body) { return to_json(move_bytes(*listeners, flow_request_from_json(body))); };
  actions["ping"] = [](const Document& body) { return to_json(ping(ping_request_from_json(body))); };
  actions["answer-pings"] = [=](const Document& body) {
    if (listeners->empty()) throw Error(ErrorCode::kInvalid, "nobody listens for pings");
    return to_json(answer_pings(listeners->front(), ping_request_from_json(body)));
  };
  actions["perftest"] = [](const Document& body) { return to_json(run_perftests(perftest_request_from_json(body))); };
  return actions;
}

}  // namespace yoke
