// The metrics of any server that listens on a node reach this parser.
#include <cstdlib>

#include "yoke/watch/engines.h"
#include "yoke/watch/metrics_text.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace yoke::watch;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  MetricsWriter writer;
  const std::vector<Metric> metrics = read_metrics(text);
  for (const Metric& metric : metrics) {
    writer.family(metric.name, "gauge", "x");
    MetricsWriter::Labels labels(metric.labels.begin(), metric.labels.end());
    writer.series(labels, metric.value);
  }
  // What we write reads back as the same.
  if (read_metrics(writer.text()) != metrics) std::abort();
  const auto engine = read_engine(metrics, 8000);
  return engine && engine->kind.empty() ? 1 : 0;
}
