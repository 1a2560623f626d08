#include "yoke/plan/serve_advice.h"

#include <fmt/format.h>

#include <cmath>

#include "yoke/base/units.h"
#include "yoke/plan/serve_layouts.h"

namespace yoke::plan {
namespace {

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }

bool would_fit(const Request& request, const Constants& k) {
  for (const Layout& layout : possible_layouts(request)) {
    if (score(request, layout, k).planned.memory.fits()) return true;
  }
  return false;
}

// Where all ranks cannot share each layer, some of the nodes may, and one request is faster on these alone.
void add_fewer_nodes(Plan& plan, const Request& request, const Layout& layout, const Constants& k) {
  ServeCase all = serve_case(request, layout);
  all.batch = 1;
  for (int nodes = request.machines.nodes - 1; nodes >= 1; --nodes) {
    Request fewer = request;
    fewer.machines.nodes = nodes;
    fewer.tensor = fewer.machines.gpus();
    fewer.pipeline = fewer.replicas = 1;
    fewer.concurrency = 1;
    if (fewer.tensor <= layout.tensor) return;
    if (!divides_heads(request.model, fewer.tensor)) continue;
    const Layout tensor{.tensor = fewer.tensor};
    if (!score(fewer, tensor, k).planned.memory.fits()) return;
    const double rate = decode_rate(serve_case(fewer, tensor), k);
    const double rate_of_all = decode_rate(all, k);
    if (rate > 1.1 * rate_of_all) {
      plan.warnings.push_back(
          fmt::format("One request is faster on {} of the {} nodes: {} decodes {:.3g} tok/s there, {} {:.3g}.", nodes,
                      request.machines.nodes, layout_name(tensor), rate, layout_name(layout), rate_of_all));
    }
    return;
  }
}

}  // namespace

void suggest_changes(Plan& plan, const Request& request, const Layout& layout, const Constants& k) {
  const ServeCase c = serve_case(request, layout);
  if (plan.fits) {
    if (request.cache_bytes > 1 && plan.context_max < static_cast<double>(request.model.context)) {
      ServeCase narrow = c;
      narrow.cache_bytes = 1;
      const double more = longest_context(narrow) - plan.context_max;
      if (more >= 1024)
        plan.changes.push_back(fmt::format("an FP8 cache: {:.0f}k more tokens of context", more / 1024));
    }
    return;
  }
  if (const double context = longest_context(c); context >= 256) {
    plan.changes.push_back(fmt::format("--context {:.0f}: the longest that fits as {}", std::floor(context / 256) * 256,
                                       layout_name(layout)));
  }
  for (const std::string_view name : {"fp8", "nvfp4", "int4"}) {
    const WeightFormat& format = *find_format(name);
    if (format.linear_bits >= request.format.linear_bits) continue;
    if (name == "nvfp4" && request.machines.gpu.fp4 == 0) continue;
    Request narrow = request;
    narrow.format = format;
    narrow.file_bytes = 0;
    narrow.rank_weights.clear();
    if (!would_fit(narrow, k)) continue;
    plan.changes.push_back(fmt::format("--format {}: {} of weights instead of {}", name,
                                       gigabytes(weight_bytes(serve_case(narrow, layout))),
                                       gigabytes(weight_bytes(c))));
    break;
  }
  for (int nodes = request.machines.nodes + 1; nodes <= 64; ++nodes) {
    Request wider = request;
    wider.machines.nodes = nodes;
    wider.tensor = wider.pipeline = wider.replicas = 0;
    if (!would_fit(wider, k)) continue;
    plan.changes.push_back(fmt::format("--on {}x{}: {} nodes hold it", nodes, request.machines.hardware, nodes));
    break;
  }
}

void warn(Plan& plan, const Request& request, const Scored& best, const Constants& k) {
  const Machines& machines = request.machines;
  if (machines.exchange == Exchange::kTcp && machines.nodes > 1 && request.engine != Engine::kYoke) {
    Request forced = request;
    forced.tensor = machines.gpus();
    forced.pipeline = forced.replicas = 1;
    if (best.planned.layout.tensor < forced.tensor && divides_heads(request.model, forced.tensor)) {
      const Scored tensor = score(forced, possible_layouts(forced).front(), k);
      plan.warnings.push_back(fmt::format(
          "Tensor parallelism over {} is a mistake: {} all-reduces take {} of each {} step, and reading a prompt of "
          "{:.0f} "
          "tokens takes {} instead of {}.",
          yoke::to_string(BitsPerSecond{machines.link * 8}), 2 * request.model.layers,
          milliseconds(tensor.step.exchange), milliseconds(tensor.step.total()), request.prompt,
          milliseconds(tensor.prompt), milliseconds(best.prompt)));
    }
  }
  const int gpus = machines.gpus();
  if (machines.nodes > 1 && !divides_heads(request.model, gpus) && best.planned.layout.tensor < gpus) {
    plan.warnings.push_back(fmt::format(
        "{} ranks do not divide the {} heads of {}: beyond TP {} more nodes help by pipeline ({}), and not the speed "
        "of one request.",
        gpus, request.model.heads, request.model.name, best.planned.layout.tensor,
        request.engine == Engine::kYoke ? "memory; stages of yoke's engine take turns"
                                        : "memory, and several requests at once"));
    if (request.rank_weights.empty()) add_fewer_nodes(plan, request, best.planned.layout, k);
  }
  if (request.context > static_cast<double>(request.model.context) && request.model.context > 0) {
    plan.warnings.push_back(
        fmt::format("{} was trained for {} tokens of context.", request.model.name, request.model.context));
  }
}

}  // namespace yoke::plan
