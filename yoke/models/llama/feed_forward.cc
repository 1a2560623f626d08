#include "yoke/models/llama/feed_forward.h"

namespace yoke::models::llama {

void DenseMlp::load(PartLoader& loader, const std::string& at) {
  const auto part = [&](const char* module, MatrixShape whole, tensor::Slice slice) {
    return StackPart{.module = at + module, .whole = whole, .slice = slice, .bias = bias_};
  };
  loader.stack({part("mlp.gate_proj", {F_, C_}, tensor::Slice::rows(columns_)),
                part("mlp.up_proj", {F_, C_}, tensor::Slice::rows(columns_))},
               ops::MatrixUse::kLinear, gate_up_);
  loader.stack({part("mlp.down_proj", {C_, F_}, tensor::Slice::columns(columns_))}, ops::MatrixUse::kLinear, down_);
}

std::size_t DenseMlp::arena_bytes(std::int64_t tokens) const {
  return ops::StepArena::bytes_of({tokens, columns_.size()}, tensor::DType::kF32);
}

void DenseMlp::run(ops::Backend& ops, const Mesh&, ops::StepArena& arena, const ops::Slab& x,
                   const ops::Slab& y) const {
  const ops::Slab hidden = arena.take({x.extent(0), columns_.size()}, tensor::DType::kF32);
  gate_up_(ops, x, hidden, ops::Activation::kSwiglu);
  down_(ops, hidden, y);
}

}  // namespace yoke::models::llama
