#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/fleet/answers.h"
#include "yoke/link/flows.h"
#include "yoke/link/pair_transport.h"

namespace yoke::link {
namespace {

using namespace literals;

// Beyond the agents' own limits for connecting and draining, so that theirs, which know more, are reported.
constexpr Seconds kTcpBeyond{20};
constexpr Seconds kPingLimit{60};

std::size_t sender_of(Direction direction) { return direction == Direction::kForward ? 0 : 1; }

class TcpTransport final : public PairTransport {
 public:
  TcpTransport(const PairNodes& nodes, const NodePair& pair, int streams)
      : nodes_(nodes), pair_(pair), streams_(streams) {}

  LinkPhase move(LinkPhaseKind kind, const std::vector<RailFlow>& flows, Seconds time) override {
    const std::string token = random_token_hex(16);
    std::array<FlowRequest, 2> requests;
    for (FlowRequest& request : requests) request = {.token = token, .send = {}, .streams = streams_, .time = time};
    for (std::size_t receiver = 0; receiver < 2; ++receiver) {
      std::vector<RailPlace> places;
      for (const RailFlow& flow : flows) {
        if (sender_of(flow.direction) != receiver) places.push_back(place(flow.rail, receiver));
      }
      const std::vector<int> ports = listen(receiver, places);
      std::size_t next = 0;
      for (const RailFlow& flow : flows) {
        if (sender_of(flow.direction) == receiver) continue;
        requests[1 - receiver].send.push_back(
            {place(flow.rail, 1 - receiver), {place(flow.rail, receiver).address, ports[next++]}});
      }
    }
    return rates_of(kind, flows, ask_both(requests, time));
  }

  RailLatency latency(std::size_t rail) override {
    PingRequest request{.token = random_token_hex(16),
                        .from = place(rail, 0),
                        .to = {place(rail, 1).address, listen(1, {place(rail, 1)}).front()},
                        .rounds = usual_ping_rounds()};
    const std::uint32_t answering = nodes_[1]->begin("answer-pings", to_json(request));
    const std::uint32_t asking = nodes_[0]->begin("ping", to_json(request));
    const Deadline deadline = Deadline::after(kPingLimit);
    const auto asked = try_to([&] { return from_json<PingOutcome>(nodes_[0]->answer(asking, deadline)); });
    const auto answered = try_to([&] { return from_json<PingOutcome>(nodes_[1]->answer(answering, deadline)); });
    if (!asked) throw asked.error();
    if (!answered) throw answered.error();
    return {.rail = pair_.rails[rail].name,
            .rows = asked->rows,
            .sent = {{nodes_[0]->name(), asked->messages, asked->resent},
                     {nodes_[1]->name(), answered->messages, answered->resent}}};
  }

 private:
  const RailPlace& place(std::size_t rail, std::size_t node) const {
    return node == 0 ? pair_.rails[rail].a : pair_.rails[rail].b;
  }

  std::vector<int> listen(std::size_t node, const std::vector<RailPlace>& places) {
    return fleet::list_of<int>(nodes_[node]->ask("listen", to_document(places), 10_s), places.size(), "ports",
                               *nodes_[node]);
  }

  // Both answers are taken before an error is reported: the one that could not connect knows more than the one that
  // waited for it.
  std::array<FlowOutcome, 2> ask_both(const std::array<FlowRequest, 2>& requests, Seconds time) {
    std::array<std::uint32_t, 2> asked{};
    for (std::size_t i = 0; i < 2; ++i) asked[i] = nodes_[i]->begin("move", to_json(requests[i]));
    const Deadline deadline = Deadline::after(time + kTcpBeyond);
    std::array<FlowOutcome, 2> outcomes;
    std::optional<Error> failure;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto outcome = try_to([&] { return from_json<FlowOutcome>(nodes_[i]->answer(asked[i], deadline)); });
      if (outcome) {
        outcomes[i] = *outcome;
      } else if (!failure || !requests[i].send.empty()) {
        failure = outcome.error();
      }
    }
    if (failure) throw *failure;
    for (std::size_t i = 0; i < 2; ++i) {
      fleet::require_count(outcomes[i].sent.size(), requests[i].send.size(), "sent flows", *nodes_[i]);
      fleet::require_count(outcomes[i].received.size(), requests[1 - i].send.size(), "received flows", *nodes_[i]);
    }
    return outcomes;
  }

  LinkPhase rates_of(LinkPhaseKind kind, const std::vector<RailFlow>& flows,
                     const std::array<FlowOutcome, 2>& outcomes) const {
    LinkPhase phase{.kind = kind};
    std::array<std::size_t, 2> sent{}, received{};
    for (const RailFlow& flow : flows) {
      const std::size_t from = sender_of(flow.direction);
      const std::size_t to = 1 - from;
      const SentFlow& out = outcomes[from].sent[sent[from]++];
      const ReceivedFlow& in = outcomes[to].received[received[to]++];
      if (out.bytes != in.bytes) {
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("{} sent {} bytes over rail {}, of which {} arrived at {} in time", nodes_[from]->name(),
                        out.bytes, pair_.rails[flow.rail].name, in.bytes, nodes_[to]->name()));
      }
      const BytesPerSecond rate = Bytes{in.window_bytes} / outcomes[to].window;
      phase.rates.push_back({pair_.rails[flow.rail].name, nodes_[from]->name(), nodes_[to]->name(),
                             to_bits_per_second(rate), out.retransmits});
    }
    for (std::size_t i = 0; i < 2; ++i) {
      // The nodes of a lab are one machine, which both of ours use.
      const bool shared = outcomes[0].load.machine == outcomes[1].load.machine;
      const double own = shared ? outcomes[0].cores + outcomes[1].cores : outcomes[i].cores;
      phase.loads.push_back({nodes_[i]->name(), outcomes[i].cores, taken_share(outcomes[i].load, own)});
    }
    return phase;
  }

  PairNodes nodes_;
  const NodePair& pair_;
  int streams_;
};

}  // namespace

std::unique_ptr<PairTransport> make_tcp_transport(const PairNodes& nodes, const NodePair& pair, int streams) {
  return std::make_unique<TcpTransport>(nodes, pair, streams);
}

}  // namespace yoke::link
