// Qwen3-MoE (Qwen Team 2025): attention as Qwen3 has it; after it each token goes to a few of many small MLPs, which a
// router chooses:
//
//   scores = router(x);  the best k of softmax(scores), perhaps renormalized;  y = sum of weight * expert(x)
//
// Every rank holds a part of every expert (columns of its MLP), so the one all-reduce that follows a dense MLP follows
// here too. All ranks must choose the same experts: partial sums of different experts would make nonsense without an
// error, and near a tie ranks may differ by an ulp. So the first rank chooses and tells the others
// (docs/decisions/0013-the-backend-contract.md).
#pragma once
#include <vector>

#include "yoke/models/llama/llama.h"

namespace yoke::models::qwen3_moe {

struct Qwen3MoeConfig {
  llama::LlamaConfig base;
  std::int64_t experts = 0;       // E
  std::int64_t experts_used = 0;  // by each token
  std::int64_t expert_width = 0;  // F of an expert
  bool renormalize = false;
  std::vector<bool> sparse;  // which layers have experts; the others a dense MLP
};

Qwen3MoeConfig read_qwen3_moe_config(const Document& config);

class ExpertsMlp final : public llama::FeedForward {
 public:
  // `columns` are this rank's of an expert's MLP.
  ExpertsMlp(const Qwen3MoeConfig& config, tensor::Range columns) : config_(config), columns_(columns) {}

  void load(PartLoader& loader, const std::string& at) override;
  std::size_t arena_bytes(std::int64_t tokens) const override;
  void run(ops::Backend& ops, const Mesh& mesh, ops::StepArena& arena, const ops::Slab& x,
           const ops::Slab& y) const override;

 private:
  const Qwen3MoeConfig& config_;
  tensor::Range columns_;
  LoadedStack router_, gate_up_, down_;
};

class Qwen3MoeOutline final : public llama::LlamaOutline {
 public:
  explicit Qwen3MoeOutline(Qwen3MoeConfig config)
      : llama::LlamaOutline(config.base, "qwen3_moe"), moe_(std::move(config)) {}
  void check_split(int ranks) const override;

 protected:
  std::unique_ptr<llama::FeedForward> feed_forward(std::int64_t layer, const Mesh& mesh) const override;

 private:
  Qwen3MoeConfig moe_;
};

}  // namespace yoke::models::qwen3_moe
