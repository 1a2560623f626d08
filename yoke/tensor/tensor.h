// A view of elements in a Storage: element type, shape, strides. Copying a Tensor copies the view, not the elements;
// slices are views into the same storage. No arithmetic here: that is yoke/ops.
//
//   Tensor logits = Tensor::zeros({T, V}, DType::kF32);
//   float* row = logits.mutable_row<float>(3);
//   Tensor half = weight.slice(1, {0, K / 2});      // columns: strided, no copy
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "yoke/base/check.h"
#include "yoke/tensor/dtype.h"
#include "yoke/tensor/shape.h"
#include "yoke/tensor/storage.h"

namespace yoke::tensor {

class Tensor {
 public:
  Tensor() : shape_{0} {}
  // Contiguous elements that start at `offset` bytes of the storage. Files align nothing: elements may start anywhere,
  // but are read through a pointer to their type only where they are aligned; copied() is.
  Tensor(Storage storage, Shape shape, DType type, std::size_t offset = 0);
  static Tensor empty(Shape shape, DType type);  // owned, uninitialized
  static Tensor zeros(Shape shape, DType type);
  template <class T>
  static Tensor borrow(std::span<T> values, Shape shape) {
    return {Storage::borrow(std::as_writable_bytes(values)), shape, DTypeOf<T>::value};
  }

  const Shape& shape() const { return shape_; }
  std::int64_t extent(std::size_t axis) const { return shape_[axis]; }
  std::int64_t stride(std::size_t axis) const { return strides_[axis]; }  // in elements
  std::int64_t count() const { return shape_.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(type_); }
  DType type() const { return type_; }
  bool is_contiguous() const;
  bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(raw()) % size_of(type_) == 0; }
  const Storage& storage() const { return storage_; }

  const std::byte* raw() const { return storage_.data() + offset_; }
  std::byte* mutable_raw() const { return storage_.mutable_data() + offset_; }
  template <class T>
  const T* data() const {
    check_type(DTypeOf<T>::value);
    return reinterpret_cast<const T*>(raw());
  }
  template <class T>
  T* mutable_data() const {
    check_type(DTypeOf<T>::value);
    return reinterpret_cast<T*>(mutable_raw());
  }
  // The first element of an index along the outermost axis.
  template <class T>
  const T* row(std::int64_t index) const {
    return data<T>() + index * strides_[0];
  }
  template <class T>
  T* mutable_row(std::int64_t index) const {
    return mutable_data<T>() + index * strides_[0];
  }
  // All elements of a contiguous tensor.
  template <class T>
  std::span<const T> span() const {
    YOKE_CHECK(is_contiguous(), "{}", to_string(shape_));
    return {data<T>(), static_cast<std::size_t>(count())};
  }
  template <class T>
  std::span<T> mutable_span() const {
    YOKE_CHECK(is_contiguous(), "{}", to_string(shape_));
    return {mutable_data<T>(), static_cast<std::size_t>(count())};
  }

  Tensor slice(std::size_t axis, Range range) const;
  Tensor transposed() const;           // of two axes
  Tensor reshaped(Shape shape) const;  // of a contiguous tensor
  Tensor copied() const;               // owned and contiguous

 private:
  void check_type(DType wanted) const {
    YOKE_CHECK(type_ == wanted, "the tensor holds {}, not {}", to_string(type_), to_string(wanted));
    YOKE_CHECK(is_aligned(), "{} at byte {} is not aligned", to_string(type_), offset_);
  }

  Storage storage_;
  Shape shape_;
  std::array<std::int64_t, Shape::kMaxRank> strides_{};
  DType type_ = DType::kF32;
  std::size_t offset_ = 0;
};

}  // namespace yoke::tensor
