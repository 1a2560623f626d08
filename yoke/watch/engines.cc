#include "yoke/watch/engines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/http/plain_client.h"

namespace yoke::watch {
namespace {

using namespace literals;

constexpr Seconds kEngineAnswer{0.5};
constexpr Seconds kPortsPeriod{5};  // the kernel walks all its connections for the list: some milliseconds
constexpr int kNodeExporterPort = 9100, kDcgmExporterPort = 9400;

// Sums series of one name: servers have one for each model or rank.
class MetricSums {
 public:
  explicit MetricSums(const std::vector<Metric>& metrics) : metrics_(metrics) {}

  std::optional<double> sum(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      std::optional<double> total;
      for (const Metric& metric : metrics_) {
        if (metric.name == name) total = total.value_or(0) + metric.value;
      }
      if (total) return total;
    }
    return std::nullopt;
  }
  std::optional<std::int64_t> count(std::initializer_list<std::string_view> names) const {
    const auto value = sum(names);
    if (!value || *value < 0 || *value > 1e15) return std::nullopt;
    return static_cast<std::int64_t>(std::llround(*value));
  }
  std::optional<double> share(std::initializer_list<std::string_view> names) const {
    const auto value = sum(names);
    return value && *value >= 0 && *value <= 1 ? value : std::nullopt;
  }
  std::optional<double> least(std::string_view name) const { return extreme(name, std::ranges::min); }
  std::optional<double> largest(std::string_view name) const { return extreme(name, std::ranges::max); }
  bool has_prefix(std::string_view prefix) const {
    return std::any_of(metrics_.begin(), metrics_.end(),
                       [&](const Metric& metric) { return metric.name.starts_with(prefix); });
  }
  std::optional<std::string> model() const {
    for (const Metric& metric : metrics_) {
      if (const auto name = metric.label("model_name"); !name.empty()) return printable(name, 120);
    }
    return std::nullopt;
  }

 private:
  template <class Choose>
  std::optional<double> extreme(std::string_view name, const Choose& choose) const {
    std::optional<double> found;
    for (const Metric& metric : metrics_) {
      if (metric.name == name) found = found ? choose(*found, metric.value) : metric.value;
    }
    return found;
  }
  const std::vector<Metric>& metrics_;
};

void read_ports(const FileTree& files, std::string_view path, std::set<int>& ports) {
  const auto table = files.read(path);
  if (!table) return;
  std::string_view rest = *table;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    // "0: 0100007F:1F40 00000000:0000 0A …": local address and port, the remote's, and the state: 0A is listening.
    const std::size_t colon = line.find(':', line.find(": ") + 1);
    if (colon == std::string_view::npos || line.size() < colon + 8) continue;
    const std::size_t state = line.find(' ', line.find(' ', colon) + 1);
    if (state == std::string_view::npos || line.substr(state + 1, 2) != "0A") continue;
    int port = 0;
    const auto [_, failure] = std::from_chars(line.data() + colon + 1, line.data() + colon + 5, port, 16);
    if (failure == std::errc{}) ports.insert(port);
  }
}

}  // namespace

std::optional<EngineSample> read_engine(const std::vector<Metric>& metrics, int port) {
  const MetricSums sums(metrics);
  EngineSample engine;
  engine.port = port;
  if (sums.has_prefix("vllm:")) {
    engine.kind = sums.has_prefix("yoke_") ? "yoke" : "vllm";
    engine.running = sums.count({"vllm:num_requests_running"});
    engine.waiting = sums.count({"vllm:num_requests_waiting"});
    engine.cache_usage = sums.share({"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"});
    engine.prompt_tokens = sums.count({"vllm:prompt_tokens_total"});
    engine.generated_tokens = sums.count({"vllm:generation_tokens_total"});
    engine.preemptions = sums.count({"vllm:num_preemptions_total"});
    // Several models: all of them must answer, and none may take long.
    if (const auto up = sums.least("yoke_canary_up")) engine.canary_up = *up > 0;
    engine.canary_seconds = sums.largest("yoke_canary_seconds");
  } else if (sums.has_prefix("sglang:")) {
    engine.kind = "sglang";
    engine.running = sums.count({"sglang:num_running_reqs"});
    engine.waiting = sums.count({"sglang:num_queue_reqs"});
    engine.cache_usage = sums.share({"sglang:token_usage"});
    engine.prompt_tokens = sums.count({"sglang:prompt_tokens_total"});
    engine.generated_tokens = sums.count({"sglang:generation_tokens_total"});
    engine.tokens_per_second = sums.sum({"sglang:gen_throughput"});
  } else if (sums.has_prefix("llamacpp:")) {
    engine.kind = "llama-server";
    engine.running = sums.count({"llamacpp:requests_processing"});
    engine.waiting = sums.count({"llamacpp:requests_deferred"});
    engine.cache_usage = sums.share({"llamacpp:kv_cache_usage_ratio"});
    engine.prompt_tokens = sums.count({"llamacpp:prompt_tokens_total"});
    engine.generated_tokens = sums.count({"llamacpp:tokens_predicted_total"});
  } else {
    return std::nullopt;
  }
  engine.model = sums.model();
  return engine;
}

std::vector<int> listening_ports(const FileTree& files) {
  std::set<int> ports;
  read_ports(files, "/proc/net/tcp", ports);
  read_ports(files, "/proc/net/tcp6", ports);
  return {ports.begin(), ports.end()};
}

std::vector<int> usual_engine_ports() { return {8000, 8001, 8080, 30000}; }

EngineWatch::EngineWatch(std::vector<int> ports, Seconds period)
    : ports_(std::move(ports)), period_(period), thread_([this] { run(); }) {}

EngineWatch::~EngineWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

std::vector<EngineSample> EngineWatch::latest() const {
  const std::lock_guard lock(mutex_);
  return engines_;
}

std::vector<std::string> EngineWatch::exporters() const {
  const std::lock_guard lock(mutex_);
  return exporters_;
}

bool EngineWatch::wait(Seconds time) {
  std::unique_lock lock(mutex_);
  return !ending_.wait_for(lock, to_chrono(time), [&] { return end_; });
}

void EngineWatch::run() {
  do {
    const auto ignored = try_to([&] { look(); });  // what is not told is shown as absent
  } while (wait(period_));
}

void EngineWatch::look() {
  if (ports_due_.expired()) {
    listening_ = listening_ports(DiskTree());
    ports_due_ = Deadline::after(kPortsPeriod);
  }
  const auto listens = [&](int port) { return std::binary_search(listening_.begin(), listening_.end(), port); };
  std::vector<EngineSample> found;
  for (const int port : ports_) {
    if (!listens(port)) continue;
    const auto answer = try_to([&] {
      return http::ask({"127.0.0.1", port}, {.path = "/metrics"}, Deadline::after(kEngineAnswer));
    });
    if (!answer || answer->status != 200) continue;
    if (auto engine = read_engine(read_metrics(answer->body), port)) found.push_back(*std::move(engine));
  }
  std::vector<std::string> exporters;
  if (listens(kNodeExporterPort)) exporters.emplace_back("node_exporter");
  if (listens(kDcgmExporterPort)) exporters.emplace_back("dcgm-exporter");
  const std::lock_guard lock(mutex_);
  engines_ = std::move(found);
  exporters_ = std::move(exporters);
}

}  // namespace yoke::watch
