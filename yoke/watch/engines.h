// Servers of models on this node, by their /metrics: yoke serve, vLLM, SGLang, llama-server. Which ports are looked at
// follows from who listens; a server that does not answer costs nobody else time.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/file_tree.h"
#include "yoke/watch/metrics_text.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

// Nothing where these are not the metrics of an engine that we know.
std::optional<EngineSample> read_engine(const std::vector<Metric>& metrics, int port);

// TCP ports that are listened on, by /proc/net/tcp and tcp6; sorted. The fields of a line are as the kernel prints
// them.
std::vector<int> listening_ports(const FileTree& files);

// The usual ports: 8000 (yoke serve, vLLM), 8001, 8080 (llama-server), 30000 (SGLang).
std::vector<int> usual_engine_ports();

// Asks the engines at their ports again and again, in a thread of its own.
class EngineWatch {
 public:
  EngineWatch(std::vector<int> ports, Seconds period);
  EngineWatch(const EngineWatch&) = delete;
  EngineWatch& operator=(const EngineWatch&) = delete;
  ~EngineWatch();

  std::vector<EngineSample> latest() const;
  std::vector<std::string> exporters() const;  // of metrics, that run here

 private:
  void run();
  bool wait(Seconds time);  // false: it is to end
  void look();

  const std::vector<int> ports_;
  const Seconds period_;
  std::vector<int> listening_;  // of the thread
  Deadline ports_due_ = Deadline::after(Seconds{0});
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  bool end_ = false;
  std::vector<EngineSample> engines_;
  std::vector<std::string> exporters_;
  std::thread thread_;
};

}  // namespace yoke::watch
