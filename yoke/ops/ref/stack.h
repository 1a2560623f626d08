// The weights of the reference backend: as they are stored, dense.
#pragma once
#include "yoke/ops/backend.h"

namespace yoke::ops::ref {

class RefStack final : public PackedStack {
 public:
  RefStack(std::vector<tensor::Matrix> parts, std::size_t bytes)
      : PackedStack(parts, bytes), matrices_(std::move(parts)) {}
  const std::vector<tensor::Matrix>& matrices() const { return matrices_; }

 private:
  std::vector<tensor::Matrix> matrices_;
};

inline const std::vector<tensor::Matrix>& matrices_of(const PackedStack& packed) {
  const auto* const ours = dynamic_cast<const RefStack*>(&packed);
  YOKE_CHECK(ours != nullptr, "a stack of {} x {} was packed by another backend", packed.rows(), packed.columns());
  return ours->matrices();
}

}  // namespace yoke::ops::ref
