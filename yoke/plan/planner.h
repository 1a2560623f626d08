// (machines, model, goal) to a plan with reasons. Pure: the same request gives the same plan, on any machine.
//
//   Request request{.model = *find_model_facts("llama-3.1-405b"), .format = *find_format("int4"),
//                   .machines = parse_machines("2xspark")};
//   const Plan plan = make_plan(request, shipped_constants());
//   plan.fits, plan.layouts.front().why, plan.estimates
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/plan/cabling.h"
#include "yoke/plan/draw.h"
#include "yoke/plan/memory.h"
#include "yoke/plan/train.h"

namespace yoke::plan {

enum class Goal { kServe, kDraw, kTrain };
constexpr auto enum_names(Goal) {
  return std::array{std::pair{"serve", Goal::kServe}, std::pair{"draw", Goal::kDraw}, std::pair{"train", Goal::kTrain}};
}

struct Request {
  Goal goal = Goal::kServe;
  spec::ModelFacts model;
  std::optional<spec::ImageModelFacts> image;  // of draw
  WeightFormat format{};
  double file_bytes = 0;  // exact, from the headers of the files; 0: not known
  Machines machines;
  Engine engine = Engine::kVllm;
  // Serving.
  double context = 4096;
  bool context_may_shrink = false;             // as yoke's engine does where no context is asked for
  std::vector<RankWeights> rank_weights = {};  // of yoke's engine, from the files
  double concurrency = 1;
  bool embeddings = false;  // also how many texts of `prompt` tokens become vectors each second
  double prompt = 1024;
  double generated = 256;  // of one answer: what layouts are compared by
  double cache_bytes = 2;
  int draft = 0;
  double acceptance = 0;
  // Training.
  Tuning tuning = Tuning::kFull;
  double sequence = 4096;
  double global_batch = 0;
  double tokens = 0;  // to train on; 0: not asked
  // Drawing.
  double width = 1024;
  double height = 1024;
  double steps = 0;  // 0: the model's usual
  // Fixed by the user; 0: searched.
  int tensor = 0;
  int pipeline = 0;
  int replicas = 0;
};

// A number with its 80% interval and where it comes from.
struct Estimate {
  std::string name;
  double value = 0;
  double low = 0;
  double high = 0;
  std::string unit;
  std::string provenance;
};

struct TimeShare {
  std::string part;  // "weights", "exchange", …
  double seconds = 0;
};

struct PlannedLayout {
  Layout layout;
  std::string name;  // "TP 2", "PP 3"
  MemoryUse memory;
  double score = 0;  // output tokens/s with prompts read (serve), tokens/s (train) or images/s (draw)
  std::string why;
  std::string sharding;   // of training
  std::string recompute;  // of training
  double micro_batch = 0;
};

struct Plan {
  Goal goal = Goal::kServe;
  std::string model;
  std::string format;
  std::string machines;
  bool fits = false;
  std::vector<PlannedLayout> layouts;  // the best three that fit; the least bad one where none does
  std::vector<TimeShare> step;         // of the winner
  std::vector<Estimate> estimates;
  double context = 0;                // as planned
  double context_max = 0;            // of one sequence for each replica
  double sequences_max = 0;          // of the asked context
  std::vector<std::string> changes;  // what would make it fit, or fit better
  std::vector<std::string> warnings;
  std::vector<std::string> guesses;
  Cabling cabling;
};

// Error(kUsage) for what cannot be: heads that the asked tensor parallelism does not divide, more ranks than GPUs.
Plan make_plan(const Request& request, const Constants& constants);
Document to_json(const Plan& plan);

// Names and numbers that several files of this folder print.
std::string layout_name(const Layout& layout);
ServeCase serve_case(const Request& request, const Layout& layout);
// Of an estimate of this class; `doubt` widens it.
Estimate estimate_of(std::string name, double value, std::string unit, const std::string& class_name, double doubt,
                     const Constants& constants);
// How much less is known than of a catalogued model on measured hardware: 1 or more.
double doubt_of(const Request& request);

Plan plan_serve(const Request& request, const Constants& constants);
Plan plan_train(const Request& request, const Constants& constants);
Plan plan_draw(const Request& request, const Constants& constants);

// The same request on 1, 2, 4, … nodes.
struct ScalePoint {
  int nodes = 1;
  double rate = 0;        // tokens/s; 0: does not fit
  double efficiency = 0;  // of the smallest that fits, per node
  std::string layout;
};
std::vector<ScalePoint> scale_plan(const Request& request, int nodes_max, const Constants& constants);

}  // namespace yoke::plan
