// The second half of a decoder's layer: what follows attention. Families differ in it and in little else.
#pragma once
#include <functional>
#include <memory>

#include "yoke/models/language_model.h"

namespace yoke::models::llama {

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  // `at` is the layer's prefix: "model.layers.3."
  virtual void load(PartLoader& loader, const std::string& at) = 0;
  // What run() takes of the arena for so many tokens.
  virtual std::size_t arena_bytes(std::int64_t tokens) const = 0;
  // y [T, C] = what this rank's part makes of x [T, C]; to be summed over the ranks.
  virtual void run(ops::Backend& ops, const Mesh& mesh, ops::StepArena& arena, const ops::Slab& x,
                   const ops::Slab& y) const = 0;
};

// down(silu(gate(x)) * up(x))
class DenseMlp final : public FeedForward {
 public:
  DenseMlp(std::int64_t C, std::int64_t F, tensor::Range columns, Bias bias)
      : C_(C), F_(F), columns_(columns), bias_(bias) {}

  void load(PartLoader& loader, const std::string& at) override;
  std::size_t arena_bytes(std::int64_t tokens) const override;
  void run(ops::Backend& ops, const Mesh& mesh, ops::StepArena& arena, const ops::Slab& x,
           const ops::Slab& y) const override;

 private:
  std::int64_t C_, F_;
  tensor::Range columns_;  // of the F that are this rank's
  Bias bias_;
  LoadedStack gate_up_, down_;
};

}  // namespace yoke::models::llama
