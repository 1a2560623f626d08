#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/link/flows.h"
#include "yoke/link/link_fields.h"
#include "yoke/link/pair_transport.h"

namespace yoke {
namespace {

using namespace literals;

// Beyond the agents' own limits for connecting and draining, so that theirs, which know more, are told.
constexpr Seconds kTcpBeyond{20};
constexpr Seconds kPingLimit{60};

std::size_t sender_of(Direction direction) { return direction == Direction::kForward ? 0 : 1; }

class TcpTransport final : public PairTransport {
 public:
  TcpTransport(const PairNodes& nodes, const NodePair& pair, int streams)
      : nodes_(nodes), pair_(pair), streams_(streams) {}

  LinkPhase move(LinkPhaseKind kind, const std::vector<HalfFlow>& flows, Seconds time) override {
    const std::string token = random_token_hex(16);
    std::array<FlowRequest, 2> requests;
    for (FlowRequest& request : requests) request = {.token = token, .send = {}, .streams = streams_, .time = time};
    for (std::size_t receiver = 0; receiver < 2; ++receiver) {
      std::vector<HalfPlace> places;
      for (const HalfFlow& flow : flows) {
        if (sender_of(flow.direction) != receiver) places.push_back(place(flow.half, receiver));
      }
      const std::vector<int> ports = listen(receiver, places);
      std::size_t next = 0;
      for (const HalfFlow& flow : flows) {
        if (sender_of(flow.direction) == receiver) continue;
        requests[1 - receiver].send.push_back(
            {place(flow.half, 1 - receiver), {place(flow.half, receiver).address, ports.at(next++)}});
      }
    }
    return rates_of(kind, flows, ask_both(requests, time));
  }

  HalfLatency latency(std::size_t half) override {
    PingRequest request{.token = random_token_hex(16),
                        .from = place(half, 0),
                        .to = {place(half, 1).address, listen(1, {place(half, 1)}).at(0)},
                        .rounds = usual_ping_rounds()};
    const std::uint32_t answering = nodes_[1]->begin("answer-pings", to_json(request));
    const std::uint32_t asking = nodes_[0]->begin("ping", to_json(request));
    const Deadline deadline = Deadline::after(kPingLimit);
    const auto asked = try_to([&] { return ping_outcome_from_json(nodes_[0]->answer(asking, deadline)); });
    const auto answered = try_to([&] { return ping_outcome_from_json(nodes_[1]->answer(answering, deadline)); });
    if (!asked) throw asked.error();
    if (!answered) throw answered.error();
    return {.half = pair_.halves[half].name,
            .rows = asked->rows,
            .sent = {{nodes_[0]->name(), asked->messages, asked->resent},
                     {nodes_[1]->name(), answered->messages, answered->resent}}};
  }

 private:
  const HalfPlace& place(std::size_t half, std::size_t node) const {
    return node == 0 ? pair_.halves[half].a : pair_.halves[half].b;
  }

  std::vector<int> listen(std::size_t node, const std::vector<HalfPlace>& places) {
    return from_document<std::vector<int>>(nodes_[node]->ask("listen", to_document(places), 10_s));
  }

  // Both answers are taken before an error is told: the one that could not connect knows more than the one that waited
  // for it.
  std::array<FlowOutcome, 2> ask_both(const std::array<FlowRequest, 2>& requests, Seconds time) {
    std::array<std::uint32_t, 2> asked{};
    for (std::size_t i = 0; i < 2; ++i) asked[i] = nodes_[i]->begin("move", to_json(requests[i]));
    const Deadline deadline = Deadline::after(time + kTcpBeyond);
    std::array<FlowOutcome, 2> outcomes;
    std::optional<Error> failure;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto outcome = try_to([&] { return flow_outcome_from_json(nodes_[i]->answer(asked[i], deadline)); });
      if (outcome) {
        outcomes[i] = *outcome;
      } else if (!failure || !requests[i].send.empty()) {
        failure = outcome.error();
      }
    }
    if (failure) throw *failure;
    return outcomes;
  }

  LinkPhase rates_of(LinkPhaseKind kind, const std::vector<HalfFlow>& flows,
                     const std::array<FlowOutcome, 2>& outcomes) const {
    LinkPhase phase{.kind = kind};
    std::array<std::size_t, 2> sent{}, received{};
    for (const HalfFlow& flow : flows) {
      const std::size_t from = sender_of(flow.direction);
      const std::size_t to = 1 - from;
      const SentFlow& out = outcomes[from].sent.at(sent[from]++);
      const ReceivedFlow& in = outcomes[to].received.at(received[to]++);
      if (out.bytes != in.bytes) {
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("{} sent {} bytes over half {}, of which {} arrived at {} in time", nodes_[from]->name(),
                        out.bytes, pair_.halves[flow.half].name, in.bytes, nodes_[to]->name()));
      }
      const BytesPerSecond rate = Bytes{in.window_bytes} / outcomes[to].window;
      phase.rates.push_back({pair_.halves[flow.half].name, nodes_[from]->name(), nodes_[to]->name(),
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

}  // namespace yoke
