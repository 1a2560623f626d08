#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/result.h"
#include "yoke/fleet/answers.h"
#include "yoke/link/pair_transport.h"
#include "yoke/link/perftest.h"
#include "yoke/link/perftest_run.h"

namespace yoke::link {
namespace {

using namespace literals;

constexpr int kFirstPort = 18515;  // perftest's own
constexpr Seconds kPerftestBeyond{25};
constexpr std::array<std::int64_t, 4> kLatencySizes = {8, 4 << 10, 16 << 10, 64 << 10};

// One program of perftest on each side for each rail. In a run of both directions perftest tells their sum.
class RdmaTransport final : public PairTransport {
 public:
  RdmaTransport(const PairNodes& nodes, const NodePair& pair, const std::vector<PairRailFacts>& facts)
      : nodes_(nodes), pair_(pair), facts_(facts) {}

  LinkPhase move(LinkPhaseKind kind, const std::vector<RailFlow>& flows, Seconds time) override {
    const bool both_ways = kind == LinkPhaseKind::kBothWays;
    std::vector<RailFlow> runs;
    for (const RailFlow& flow : flows) {
      if (!both_ways || flow.direction == Direction::kForward) runs.push_back(flow);
    }
    std::vector<PerftestRun> programs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      programs.push_back({.kind = both_ways ? PerftestRun::Kind::kBandwidthBothWays : PerftestRun::Kind::kBandwidth,
                          .port = kFirstPort + static_cast<int>(i),
                          .time = time});
    }
    const std::vector<std::string> outputs = run(runs, programs, time + kPerftestBeyond);
    LinkPhase phase{.kind = kind};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const BitsPerSecond rate = parse_perftest_bandwidth(outputs[i]).back().average;
      const bool forward = runs[i].direction == Direction::kForward;
      const std::string& from = nodes_[forward ? 0 : 1]->name();
      const std::string& to = nodes_[forward ? 1 : 0]->name();
      const std::string& rail = pair_.rails[runs[i].rail].name;
      phase.rates.push_back({rail, from, to, both_ways ? rate / 2 : rate, 0});
      if (both_ways) phase.rates.push_back({rail, to, from, rate / 2, 0});
    }
    return phase;
  }

  RailLatency latency(std::size_t rail) override {
    RailLatency latency{.rail = pair_.rails[rail].name, .rows = {}, .sent = {}};
    for (const std::int64_t size : kLatencySizes) {
      const std::vector<PerftestRun> program = {
          {.kind = PerftestRun::Kind::kLatency, .port = kFirstPort, .size = size}};
      const std::string output = run({{rail, Direction::kForward}}, program, kPerftestBeyond).front();
      const PerftestLatency row = parse_perftest_latency(output).back();
      latency.rows.push_back({row.size, static_cast<int>(row.iterations), row.min, row.typical, row.p99, row.max});
    }
    return latency;
  }

 private:
  PerftestRun at(PerftestRun program, const RailFlow& flow, std::size_t node) const {
    const RailFacts& facts = node == 0 ? facts_[flow.rail].a : facts_[flow.rail].b;
    program.device = facts.rdma->device;
    program.gid_index = *facts.rdma->gid_index;
    const std::size_t sender = flow.direction == Direction::kForward ? 0 : 1;
    if (node == sender) program.peer = (sender == 0 ? pair_.rails[flow.rail].b : pair_.rails[flow.rail].a).address;
    return program;
  }

  // What the sending sides printed. Flows of one call go in one direction.
  std::vector<std::string> run(const std::vector<RailFlow>& flows, const std::vector<PerftestRun>& programs,
                               Seconds limit) {
    const std::size_t sender = flows.front().direction == Direction::kForward ? 0 : 1;
    std::array<std::uint32_t, 2> asked{};
    for (const std::size_t node : {1 - sender, sender}) {
      PerftestRequest request{.commands = {}, .limit = limit};
      for (std::size_t i = 0; i < flows.size(); ++i) {
        request.commands.push_back(perftest_argv(at(programs[i], flows[i], node)));
      }
      asked[node] = nodes_[node]->begin("perftest", to_json(request));
    }
    const Deadline deadline = Deadline::after(limit + 10_s);
    const auto reported =
        try_to([&] { return from_json<std::vector<PerftestOutput>>(nodes_[sender]->answer(asked[sender], deadline)); });
    const auto waited = try_to([&] { return nodes_[1 - sender]->answer(asked[1 - sender], deadline); });
    if (!reported) throw reported.error();
    if (!waited) throw waited.error();
    fleet::require_count(reported->size(), flows.size(), "outputs", *nodes_[sender]);
    std::vector<std::string> outputs;
    for (const PerftestOutput& output : *reported) outputs.push_back(output.text);
    return outputs;
  }

  PairNodes nodes_;
  const NodePair& pair_;
  const std::vector<PairRailFacts>& facts_;
};

}  // namespace

std::unique_ptr<PairTransport> make_rdma_transport(const PairNodes& nodes, const NodePair& pair,
                                                   const std::vector<PairRailFacts>& facts) {
  return std::make_unique<RdmaTransport>(nodes, pair, facts);
}

}  // namespace yoke::link
