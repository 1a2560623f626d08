#include "yoke/tensor/tensor.h"

#include <cstring>

namespace yoke::tensor {
namespace {

std::array<std::int64_t, Shape::kMaxRank> contiguous_strides(const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  if (shape.count() == 0) return strides;  // a file may claim [0, 2^62, 2^62], whose strides no integer holds
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

// Copies axis by axis; whole runs at once where the innermost axis is dense in the source.
std::byte* copy_axis(const Tensor& from, std::size_t axis, const std::byte* source, std::byte* target) {
  const std::size_t element = size_of(from.type());
  if (axis == from.shape().rank()) {
    std::memcpy(target, source, element);
    return target + element;
  }
  const auto extent = static_cast<std::size_t>(from.extent(axis));
  if (axis + 1 == from.shape().rank() && from.stride(axis) == 1) {
    std::memcpy(target, source, extent * element);
    return target + extent * element;
  }
  for (std::size_t i = 0; i < extent; ++i) {
    target = copy_axis(from, axis + 1, source + i * static_cast<std::size_t>(from.stride(axis)) * element, target);
  }
  return target;
}

}  // namespace

Tensor::Tensor(Storage storage, Shape shape, DType type, std::size_t offset)
    : storage_(std::move(storage)), shape_(shape), strides_(contiguous_strides(shape)), type_(type), offset_(offset) {
  YOKE_CHECK(offset_ <= storage_.size() && bytes() <= storage_.size() - offset_, "{} of {} at {} in {} bytes",
             to_string(shape_), to_string(type_), offset_, storage_.size());
}

Tensor Tensor::empty(Shape shape, DType type) {
  const auto count = static_cast<std::size_t>(shape.count());
  YOKE_CHECK(count <= static_cast<std::size_t>(PTRDIFF_MAX) / size_of(type), "{}", to_string(shape));
  return {Storage::allocate(count * size_of(type)), shape, type};
}

Tensor Tensor::zeros(Shape shape, DType type) {
  Tensor tensor = empty(shape, type);
  if (tensor.bytes() > 0) std::memset(tensor.mutable_raw(), 0, tensor.bytes());
  return tensor;
}

bool Tensor::is_contiguous() const {
  if (count() == 0) return true;
  std::int64_t stride = 1;
  for (std::size_t axis = shape_.rank(); axis-- > 0;) {
    if (shape_[axis] > 1 && strides_[axis] != stride) return false;
    stride *= shape_[axis];
  }
  return true;
}

Tensor Tensor::slice(std::size_t axis, Range range) const {
  YOKE_CHECK(axis < shape_.rank() && 0 <= range.begin && range.begin <= range.end && range.end <= shape_[axis],
             "{} of axis {} of {}", to_string(range), axis, to_string(shape_));
  Tensor part = *this;
  part.shape_ = shape_.with(axis, range.size());
  part.offset_ += static_cast<std::size_t>(range.begin * strides_[axis]) * size_of(type_);
  return part;
}

Tensor Tensor::transposed() const {
  YOKE_CHECK_EQ(shape_.rank(), 2U);
  Tensor turned = *this;
  turned.shape_ = Shape{shape_[1], shape_[0]};
  std::swap(turned.strides_[0], turned.strides_[1]);
  return turned;
}

Tensor Tensor::reshaped(Shape shape) const {
  YOKE_CHECK(is_contiguous() && shape.count() == count(), "{} as {}", to_string(shape_), to_string(shape));
  Tensor changed = *this;
  changed.shape_ = shape;
  changed.strides_ = contiguous_strides(shape);
  return changed;
}

Tensor Tensor::copied() const {
  Tensor copy = empty(shape_, type_);
  if (count() > 0) copy_axis(*this, 0, raw(), copy.mutable_raw());
  return copy;
}

}  // namespace yoke::tensor
