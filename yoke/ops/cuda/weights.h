// Weights in a GPU's memory: a stack of matrices in the layout of layout.h. Parts of one format become one packed
// matrix, which one kernel multiplies; where formats differ there are several.
#pragma once
#include <mutex>
#include <vector>

#include "yoke/cuda/driver.h"
#include "yoke/ops/backend.h"
#include "yoke/ops/cuda/kernels.h"

namespace yoke::ops::cuda {

// What a run of equal parts of a stack takes, known before anything is read.
struct PieceShape {
  PackedMatrix matrix;  // without addresses
  std::size_t first_part = 0, parts = 0;
  bool is_reordered = false;  // columns lie in another order, so that groups are whole steps
  bool has_zeros = false;
  std::vector<int> part_panels;  // of each part
  std::size_t values = 0, scales = 0, zeros = 0, panels = 0, source = 0,
              bytes = 0;  // offsets in its memory, and its end
};
std::vector<PieceShape> shape_stack(std::span<const tensor::MatrixInfo> stack, MatrixUse use);

class CudaStack final : public PackedStack {
 public:
  CudaStack(std::span<const tensor::Matrix> stack, MatrixUse use, std::size_t bytes)
      : PackedStack(stack, bytes), use_(use) {}

  MatrixUse use() const { return use_; }
  const std::vector<PackedMatrix>& pieces() const { return pieces_; }
  void add(const PackedMatrix& piece, yoke::cuda::CudaMemory memory) {
    pieces_.push_back(piece);
    memory_.push_back(std::move(memory));
  }

 private:
  MatrixUse use_;
  std::vector<PackedMatrix> pieces_;
  std::vector<yoke::cuda::CudaMemory> memory_;
};

// Copies stored weights to the device and packs them there. Several threads may pack at once.
class Packer {
 public:
  Packer(const yoke::cuda::CudaDevice& device, const Kernels& kernels);
  ~Packer();
  std::unique_ptr<CudaStack> pack(std::span<const tensor::Matrix> stack, MatrixUse use);

 private:
  class Uploader;
  struct Source;
  void pack_piece(const PieceShape& shape, std::span<const tensor::Matrix> parts, Uploader& uploader, CudaStack& stack);
  std::unique_ptr<Uploader> take_uploader();

  const yoke::cuda::CudaDevice& device_;
  const Kernels& kernels_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Uploader>> idle_;
};

}  // namespace yoke::ops::cuda
