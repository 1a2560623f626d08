// Any bytes as a calibration: refused as an Error, or one that survives its JSON and plans with finite numbers.
#include <cmath>
#include <cstdint>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/plan/planner.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const yoke::Document document = yoke::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    const yoke::plan::Calibration calibration = from_json<yoke::plan::Calibration>(document);
    YOKE_CHECK(from_json<yoke::plan::Calibration>(yoke::plan::to_json(calibration)) == calibration);
    yoke::plan::Request request;
    request.model = *yoke::spec::find_model_facts("llama-3.2-1b");
    request.format = *yoke::plan::find_format("int4");
    request.machines = yoke::plan::parse_machines("2xcpu");
    request.engine = yoke::plan::Engine::kYoke;
    yoke::plan::calibrate(calibration, request.machines);
    const yoke::plan::Plan plan = yoke::plan::make_plan(request, yoke::plan::shipped_constants());
    for (const yoke::plan::Estimate& estimate : plan.estimates) {
      YOKE_CHECK(std::isfinite(estimate.value) && estimate.value >= 0, "{}", estimate.name);
    }
  } catch (const yoke::Error& error) {
    YOKE_CHECK(error.code() == yoke::ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}
