#include "yoke/plan/planner.h"

namespace yoke::plan {
namespace {

Document text(std::string_view value) { return Document::string(std::string(value)); }
Document number(double value) { return Document::number(value); }
Document whole(int value) { return Document::number(std::int64_t{value}); }

Document texts(const std::vector<std::string>& values) {
  Document list = Document::list();
  for (const std::string& value : values) list.items.push_back(text(value));
  return list;
}

Document memory_json(const MemoryUse& use) {
  return Document::map({{"weights", number(use.weights)},
                        {"cache", number(use.cache)},
                        {"activations", number(use.activations)},
                        {"gradients", number(use.gradients)},
                        {"optimizer", number(use.optimizer)},
                        {"runtime", number(use.runtime)},
                        {"reserve", number(use.reserve)},
                        {"capacity", number(use.capacity)},
                        {"left", number(use.left())},
                        {"fits", Document::boolean(use.fits())}});
}

Document layout_json(const PlannedLayout& planned) {
  Document document = Document::map({{"name", text(planned.name)},
                                     {"tensor", whole(planned.layout.tensor)},
                                     {"pipeline", whole(planned.layout.pipeline)},
                                     {"replicas", whole(planned.layout.replicas)},
                                     {"experts", whole(planned.layout.experts)},
                                     {"score", number(planned.score)},
                                     {"why", text(planned.why)},
                                     {"memory_of_gpu", memory_json(planned.memory)}});
  if (!planned.sharding.empty()) {
    document.add("sharding", text(planned.sharding));
    document.add("recompute", text(planned.recompute));
    document.add("micro_batch", number(planned.micro_batch));
  }
  return document;
}

Document cabling_json(const Cabling& cabling) {
  Document cables = Document::list();
  for (const Cable& cable : cabling.cables) {
    Document rails = Document::list();
    for (const CableRail& rail : cable.rails) {
      rails.items.push_back(Document::map({{"rail", text(rail.rail)},
                                           {"from_interface", text(rail.from_interface)},
                                           {"to_interface", text(rail.to_interface)},
                                           {"subnet", text(rail.subnet)}}));
    }
    cables.items.push_back(Document::map({{"from", text(cable.from)},
                                          {"from_port", whole(cable.from_port)},
                                          {"to", text(cable.to)},
                                          {"to_port", whole(cable.to_port)},
                                          {"rails", std::move(rails)}}));
  }
  Document approved = Document::list();
  for (const spec::ApprovedCable& cable : cabling.approved) {
    approved.items.push_back(
        Document::map({{"part", text(cable.part)}, {"length", text(cable.length)}, {"source", text(cable.source)}}));
  }
  return Document::map({{"topology", text(yoke::spec::to_string(cabling.topology))},
                        {"shape", text(cabling.shape)},
                        {"cables", std::move(cables)},
                        {"cables_in_all", whole(cabling.cables_in_all)},
                        {"approved", std::move(approved)},
                        {"notes", texts(cabling.notes)}});
}

}  // namespace

Document to_json(const Plan& plan) {
  Document layouts = Document::list();
  for (const PlannedLayout& planned : plan.layouts) layouts.items.push_back(layout_json(planned));
  Document step = Document::list();
  for (const TimeShare& share : plan.step) {
    step.items.push_back(Document::map({{"part", text(share.part)}, {"seconds", number(share.seconds)}}));
  }
  Document estimates = Document::list();
  for (const Estimate& estimate : plan.estimates) {
    estimates.items.push_back(Document::map({{"name", text(estimate.name)},
                                             {"value", number(estimate.value)},
                                             {"low", number(estimate.low)},
                                             {"high", number(estimate.high)},
                                             {"unit", text(estimate.unit)},
                                             {"provenance", text(estimate.provenance)}}));
  }
  std::string goal;
  for (const auto& [name, value] : enum_names(plan.goal)) {
    if (value == plan.goal) goal = name;
  }
  return Document::map({{"schema", whole(1)},
                        {"goal", text(goal)},
                        {"model", text(plan.model)},
                        {"format", text(plan.format)},
                        {"machines", text(plan.machines)},
                        {"fits", Document::boolean(plan.fits)},
                        {"layouts", std::move(layouts)},
                        {"step", std::move(step)},
                        {"estimates", std::move(estimates)},
                        {"context", number(plan.context)},
                        {"context_max", number(plan.context_max)},
                        {"sequences_max", number(plan.sequences_max)},
                        {"changes", texts(plan.changes)},
                        {"warnings", texts(plan.warnings)},
                        {"guesses", texts(plan.guesses)},
                        {"cabling", cabling_json(plan.cabling)}});
}

}  // namespace yoke::plan
