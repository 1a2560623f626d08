// The board as JSON: lines for scripts, and what the page is sent.
#include "yoke/base/fields.h"
#include "yoke/watch/watch_text.h"

namespace yoke::watch {
namespace {

// Absent values are left out.
class JsonMap {
 public:
  template <class T>
  JsonMap& put(const char* key, const T& value) {
    Document written = to_document(value);
    if (written.kind != Document::Kind::kNull) map_.add(key, std::move(written));
    return *this;
  }
  Document take() { return std::move(map_); }

 private:
  Document map_ = Document::map();
};

Document rail_json(const BoardRail& rail) {
  JsonMap map;
  map.put("interface", rail.interface);
  if (!rail.title.empty()) map.put("rail", rail.title);
  return map.put("listed", rail.is_listed)
      .put("up", rail.sample.up)
      .put("carrier", rail.sample.carrier)
      .put("received_bits_per_second", rail.in)
      .put("sent_bits_per_second", rail.out)
      .put("interface_received_bytes_per_second", rail.rates.received)
      .put("interface_sent_bytes_per_second", rail.rates.sent)
      .put("rdma_received_bytes_per_second", rail.rates.rdma_received)
      .put("rdma_sent_bytes_per_second", rail.rates.rdma_sent)
      .put("errors", rail.rates.errors)
      .put("discards", rail.rates.discards)
      .put("retransmits", rail.rates.retransmits)
      .put("pause_frames", rail.rates.pauses)
      .put("rdma_device", rail.sample.rdma_device)
      .put("rdma_state", rail.sample.rdma_state)
      .put("pcie_width", rail.sample.pcie_width)
      .take();
}

Document gpu_json(const GpuSample& gpu, const GpuRates& rates) {
  JsonMap map;
  map.put("index", gpu.index)
      .put("name", gpu.name)
      .put("uuid", gpu.uuid)
      .put("lost", gpu.lost)
      .put("utilization_percent", gpu.utilization_percent)
      .put("engine_active", gpu.engine_active)
      .put("tensor_active", gpu.tensor_active)
      .put("memory_active", gpu.memory_active)
      .put("sm_clock_mhz", gpu.sm_clock_mhz)
      .put("memory_clock_mhz", gpu.memory_clock_mhz)
      .put("temperature_c", gpu.temperature_c)
      .put("power_w", gpu.power_w)
      .put("clock_limits", gpu.clock_limits)
      .put("thermal_share", rates.thermal_share)
      .put("power_share", rates.power_share)
      .put("memory_total", gpu.memory_total)
      .put("memory_used", gpu.memory_used)
      .put("ecc_corrected", gpu.ecc_corrected)
      .put("ecc_uncorrected", gpu.ecc_uncorrected)
      .put("xid_count", gpu.xid_count)
      .put("xid_last", gpu.xid_last)
      .put("nvlink_received_bytes_per_second", rates.nvlink_received)
      .put("nvlink_sent_bytes_per_second", rates.nvlink_sent);
  Document list = Document::list();
  for (const GpuProcessSample& process : gpu.processes) {
    list.items.push_back(JsonMap()
                             .put("pid", process.pid)
                             .put("user", process.user)
                             .put("command", process.command)
                             .put("memory", process.memory)
                             .take());
  }
  return map.put("processes", list).take();
}

Document engine_json(const EngineSample& engine, const EngineRates& rates) {
  return JsonMap()
      .put("kind", engine.kind)
      .put("port", engine.port)
      .put("model", engine.model)
      .put("running", engine.running)
      .put("waiting", engine.waiting)
      .put("cache_usage", engine.cache_usage)
      .put("prompt_tokens_per_second", rates.prompt_tokens)
      .put("tokens_per_second", rates.generated_tokens ? rates.generated_tokens : engine.tokens_per_second)
      .put("canary_up", engine.canary_up)
      .put("canary_seconds", engine.canary_seconds)
      .take();
}

void add_lists(const BoardNode& node, JsonMap& map) {
  Document rails = Document::list();
  for (const BoardRail& rail : node.rails) rails.items.push_back(rail_json(rail));
  Document gpus = Document::list();
  for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
    gpus.items.push_back(gpu_json(node.sample->gpus[i], node.rates.gpus[i]));
  }
  Document engines = Document::list();
  for (std::size_t i = 0; i < node.sample->engines.size(); ++i) {
    engines.items.push_back(engine_json(node.sample->engines[i], node.rates.engines[i]));
  }
  Document sensors = Document::list();
  for (const SensorSample& sensor : node.sample->sensors) {
    sensors.items.push_back(JsonMap()
                                .put("chip", sensor.chip)
                                .put("name", sensor.name)
                                .put("celsius", sensor.celsius)
                                .put("watts", sensor.watts)
                                .take());
  }
  Document jobs = Document::list();
  for (const JobSample& job : node.sample->jobs) {
    jobs.items.push_back(JsonMap()
                             .put("name", job.name)
                             .put("since", job.since)
                             .put("ranks", job.ranks > 0 ? std::optional(job.ranks) : std::nullopt)
                             .put("command", job.command)
                             .take());
  }
  map.put("rails", rails).put("gpus", gpus).put("engines", engines).put("sensors", sensors).put("jobs", jobs);
}

}  // namespace

Document sample_json(const Board& board, std::size_t place) {
  const BoardNode& node = board.nodes()[place];
  JsonMap map;
  map.put("event", std::string("sample"))
      .put("node", node.name)
      .put("time", node.heard ? *node.heard : board.now())
      .put("silent", node.silent);
  if (node.problem) map.put("problem", node.problem->message);
  if (!node.sample) return map.take();
  const MemorySample& memory = node.sample->memory;
  map.put("uptime", node.sample->uptime)
      .put("cpu_busy", node.rates.cpu_busy)
      .put("cores", node.sample->cpu.cores)
      .put("load", node.sample->cpu.load)
      .put("memory_total", memory.total)
      .put("memory_available", memory.available)
      .put("memory_pressure_some", node.rates.memory_some)
      .put("memory_pressure_full", node.rates.memory_full)
      .put("swap_total", memory.swap_total)
      .put("swap_free", memory.swap_free)
      .put("disk_free", node.sample->disk_free)
      .put("disk_read_bytes_per_second", node.rates.disk_read)
      .put("disk_written_bytes_per_second", node.rates.disk_written)
      .put("tcp_retransmits", node.rates.tcp_retransmits)
      .put("tokens_per_second", node.tokens_per_second);
  add_lists(node, map);
  return map.take();
}

Document change_json(const FindingChange& change) {
  Document document = Document::map(
      {{"event", Document::string(change.kind == FindingChange::Kind::kBegins ? "finding-begins" : "finding-ends")}});
  const Document finding = to_json(change.finding);
  document.fields.insert(document.fields.end(), finding.fields.begin(), finding.fields.end());
  return document;
}

Document board_json(const Board& board) {
  Document nodes = Document::list();
  for (std::size_t i = 0; i < board.nodes().size(); ++i) nodes.items.push_back(sample_json(board, i));
  const auto finding_list = [&](const std::vector<TrackedFinding>& findings) {
    Document list = Document::list();
    for (const TrackedFinding& tracked : findings) {
      Document item = to_json(tracked);
      if (const auto series = board.series_of(tracked.finding)) item.add("series", Document::string(*series));
      list.items.push_back(std::move(item));
    }
    return list;
  };
  return Document::map({{"cluster", Document::string(board.plan().cluster.name)},
                        {"time", Document::number(board.now())},
                        {"nodes", std::move(nodes)},
                        {"findings", finding_list(board.findings().open())},
                        {"ended_findings", finding_list(board.findings().closed())}});
}

}  // namespace yoke::watch
