// The samples of all nodes at once, as they come: one login and one stream for each node. A node that is lost is tried
// again, and its facts are read again when it is back.
//
//   NodeStreams streams(plan, options);
//   while (const auto observation = streams.next(Deadline::after(1_s))) …
//
// One thread per node fills a queue; the owner's thread takes from it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "yoke/fleet/node.h"
#include "yoke/watch/observation.h"

namespace yoke::watch {

struct StreamOptions {
  fleet::NodeOptions node = {};
  std::vector<int> engine_ports = {};
};

class NodeStreams final : public ObservationSource {
 public:
  NodeStreams(const WatchPlan& plan, StreamOptions options);
  NodeStreams(const NodeStreams&) = delete;
  NodeStreams& operator=(const NodeStreams&) = delete;
  ~NodeStreams() override;

  std::optional<Observation> next(Deadline deadline) override;
  bool at_end() const override { return false; }
  double now() const override;

 private:
  void follow(std::size_t place) noexcept;
  void follow_once(std::size_t place);
  void add(Observation observation);
  bool pause(Seconds time);  // false: it is to end

  const WatchPlan plan_;
  const StreamOptions options_;
  const double began_at_;
  const Instant began_;
  std::atomic<bool> end_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Observation> queue_;
  std::vector<std::thread> threads_;
};

// The agent's action "watch-facts": what this machine is, without NVML, which a sampler asks anyway.
Document answer_watch_facts(const Document& question, agent::AgentContext& context);

}  // namespace yoke::watch
