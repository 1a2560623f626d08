// The metrics of a server that somebody else runs.
#include <cstdlib>

#include "yoke/serve/upstream_metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto gauges = yoke::serve::read_upstream_metrics({reinterpret_cast<const char*>(data), size});
  for (const auto& value : {gauges.waiting, gauges.prefix_hits, gauges.cache_usage, gauges.preemptions}) {
    if (value && !(*value >= 0)) std::abort();
  }
  if (gauges.cache_usage && *gauges.cache_usage > 1) std::abort();
  return 0;
}
