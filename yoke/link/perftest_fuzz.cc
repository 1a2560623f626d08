// Any text as perftest's output: read, or refused as kInvalid; what is read is finite and not negative.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/link/perftest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  using namespace yoke::link;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const PerftestBandwidth& row : parse_perftest_bandwidth(text)) {
      YOKE_CHECK(row.size >= 0 && row.average.value >= 0, "{}", row.average.value);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  try {
    for (const PerftestLatency& row : parse_perftest_latency(text)) {
      YOKE_CHECK(std::isfinite(row.p99.value) && row.p99.value >= 0, "{}", row.p99.value);
    }
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}
