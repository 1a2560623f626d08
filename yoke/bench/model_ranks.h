// Measures a model (model_speed.h) over ranks: in this process where there is one, else as processes of a job, one a
// node or several on this machine. Compares with llama-bench of llama.cpp, round by round, where it is asked to.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/model_speed.h"
#include "yoke/bench/run_record.h"
#include "yoke/rank/rank_part.h"
#include "yoke/spec/cluster.h"

namespace yoke::bench {

// llama-bench, and the GGUF file that it is to run.
struct ModelPeer {
  std::filesystem::path program;
  std::filesystem::path model;
};
struct PeerRates {
  std::vector<double> prefill, decode;  // tokens a second, of each round
};
// What llama-bench printed with '-o json'. Error(kInvalid) where that is something else.
PeerRates read_llama_bench(const std::string& json);

struct ModelRequest {
  ModelSpeedOptions options;
  int ranks = 1;
  std::optional<spec::Cluster> cluster;
  std::optional<ModelPeer> peer;  // with one rank only
};
struct ModelRun {
  ModelSpeed speed;  // of rank 0
  std::optional<PeerRates> peer;
};
ModelRun run_model_bench(const ModelRequest& request);

std::string model_text(const ModelRun& run, const ModelSpeedOptions& options);
Document to_json(const ModelRun& run, const ModelSpeedOptions& options);
RunRecord model_record(const ModelRun& run, const ModelSpeedOptions& options);

Document to_json(const ModelSpeed& speed);
void from_json(const Document& document, ModelSpeed& speed);

rank::RankKind model_rank_kind();

}  // namespace yoke::bench
