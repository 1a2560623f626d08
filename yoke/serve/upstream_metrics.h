// The /metrics of another server (vLLM, SGLang, llama-server or yoke), as far as a front before it passes them on.
// Pure.
#pragma once
#include <string_view>

#include "yoke/serve/serve_metrics.h"

namespace yoke::serve {

// Of Prometheus' text format; what is not there, or makes no sense, is absent.
UpstreamGauges read_upstream_metrics(std::string_view exposition);

}  // namespace yoke::serve
