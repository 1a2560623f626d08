// Drawing: every GPU holds the model, and the tokens of one image are split over them.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/plan/planner.h"
#include "yoke/plan/scales.h"

namespace yoke::plan {
namespace {

DrawCase draw_case(const Request& request, int gpus) {
  return {.model = *request.image,
          .arithmetic = request.format.arithmetic,
          .runner = ImageRunner::kCompiled,
          .split = ImageSplit::kUlysses,
          .machines = request.machines,
          .gpus = gpus,
          .width = request.width,
          .height = request.height,
          .steps = request.steps > 0 ? request.steps : request.image->steps,
          .batch = 1};
}

MemoryUse draw_use(const Request& request, const DrawCase& c) {
  MemoryUse use;
  use.runtime = 1.5 * kGiB;
  const double all = draw_memory(c);
  DrawCase tiny = c;
  tiny.width = tiny.height = 16;
  use.weights = draw_memory(tiny);
  use.activations = std::max(all - use.weights, 0.0);
  evaluate_memory(use, request.machines.gpu);
  return use;
}

bool divides(const Request& request, int gpus) {
  return request.image->heads == 0 ? gpus == 1 : request.image->heads % gpus == 0;
}

// Several images at once: each whole on a GPU of its own, which exchanges nothing.
void add_whole_images(Plan& plan, const Request& request, double split, double doubt, const Constants& k) {
  const int gpus = request.machines.gpus();
  if (gpus < 2) return;
  k.forget_used();
  const double whole = 60 * gpus / draw_time(draw_case(request, 1), k).total();
  plan.estimates.push_back(
      estimate_of("images per minute, a whole one on each GPU", whole, "/min", "images", doubt, k));
  plan.changes.push_back(
      fmt::format("{} images or more: draw each whole on one GPU, which makes {:.3g} a minute{}; whole images exchange "
                  "nothing. Split an image only where there are fewer images than GPUs",
                  gpus, whole, split > 0 ? fmt::format(" instead of {:.3g}", split) : ""));
}

}  // namespace

Plan plan_draw(const Request& request, const Constants& k) {
  YOKE_CHECK(request.image.has_value(), "a plan to draw without an image model");
  Plan plan;
  const double doubt = doubt_of(request);
  std::vector<PlannedLayout> layouts;
  const double alone = draw_time(draw_case(request, 1), k).total();
  for (int gpus = 1; gpus <= std::min(request.machines.gpus(), 64); ++gpus) {
    if (request.machines.gpus() % gpus != 0 || !divides(request, gpus)) continue;
    const DrawCase c = draw_case(request, gpus);
    const DrawTime time = draw_time(c, k);
    PlannedLayout planned;
    planned.layout = {.tensor = 1, .pipeline = 1, .replicas = request.machines.gpus() / gpus};
    planned.name = gpus == 1 ? "one GPU an image" : fmt::format("sequence over {} GPUs", gpus);
    planned.memory = draw_use(request, c);
    planned.score = 1 / time.total();
    planned.why = gpus == 1 ? fmt::format("{:.1f} s an image", time.total())
                            : fmt::format("{:.1f} s an image, {:.2f}x of one GPU; exchange {:.2f} s", time.total(),
                                          alone / time.total(), time.exchange);
    layouts.push_back(planned);
    if (gpus == 1 || gpus == request.machines.gpus() || gpus == request.machines.gpus_per_node) {
      k.forget_used();
      const double again = draw_time(c, k).total();
      plan.estimates.push_back(estimate_of(fmt::format("seconds per image, {} GPU{}", gpus, gpus == 1 ? "" : "s"),
                                           again, "s", "images", doubt, k));
    }
  }
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const PlannedLayout& a, const PlannedLayout& b) { return a.score > b.score; });
  if (layouts.size() > 3) layouts.resize(3);
  plan.layouts = layouts;
  plan.fits = layouts.front().memory.fits();
  const int gpus = request.machines.gpus() / layouts.front().layout.replicas;
  const DrawTime best = draw_time(draw_case(request, gpus), k);
  plan.step = {{"steps", best.steps}, {"encoders and VAE", best.encoders}};
  if (best.exchange > 0) plan.step.push_back({"exchange", best.exchange});
  if (!plan.fits) plan.changes.emplace_back("--format fp8 or nvfp4, or a smaller --size");
  if (request.machines.gpus() > 1) {
    plan.warnings.push_back(
        fmt::format("Splitting {} by layers does not shorten an image: each step passes all layers in turn.{}",
                    request.image->name, request.image->blocks > 0 ? " Splitting by sequence does." : ""));
  }
  add_whole_images(plan, request, gpus > 1 ? 60 / best.total() * layouts.front().layout.replicas : 0, doubt, k);
  const spec::HardwareFacts& facts = *request.machines.facts;
  const double watts = request.machines.nodes * facts.load_power.value;
  k.forget_used();
  plan.estimates.push_back(estimate_of("power", watts, "W", "power", 1.2, k));
  plan.estimates.back().provenance = fmt::format("catalogue: {}", facts.load_power.source);
  plan.estimates.push_back(
      estimate_of("energy per image", watts * best.total() / layouts.front().layout.replicas, "J", "power", 1.4, k));
  return plan;
}

}  // namespace yoke::plan
