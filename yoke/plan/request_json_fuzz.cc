// Any bytes as a request: refused as an Error, or one that replays to the same request and can be planned.
#include <cmath>
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/plan/request_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::Document document = yoke::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    yoke::plan::Request request = from_json<yoke::plan::Request>(document);
    const yoke::Document written = yoke::plan::to_json(request);
    YOKE_CHECK(yoke::print_json(yoke::plan::to_json(from_json<yoke::plan::Request>(written))) ==
               yoke::print_json(written));
    request.machines.nodes = std::min(request.machines.nodes, 4);  // a search over thousands of GPUs is slow, not wrong
    request.machines.gpus_per_node = std::min(request.machines.gpus_per_node, 8);
    const yoke::plan::Plan plan = yoke::plan::make_plan(request, yoke::plan::shipped_constants());
    YOKE_CHECK(!plan.layouts.empty() && !std::isnan(plan.layouts.front().score));
  } catch (const yoke::Error& error) {
    const bool is_reported = error.code() == yoke::ErrorCode::kInvalid || error.code() == yoke::ErrorCode::kUsage;
    YOKE_CHECK(is_reported, "{}", error.message());
  }
  return 0;
}
