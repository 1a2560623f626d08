// The inner loops of the backend, one table of functions for each instruction set. avx512.cc, avx2.cc, neon.cc and
// plain.cc each say how sixteen numbers are loaded, added and multiplied there; the loops themselves are written once
// (*_loops.h). Only these files are compiled for more than the machine's baseline, and kernels.cc calls them only where
// the processor has what they need.
//
// Weights lie in panels of 16 rows (panels.h), and one panel serves any number of input rows.
#pragma once
#include <cstddef>
#include <cstdint>

namespace yoke::ops::cpu {

inline constexpr std::int64_t kPanelRows = 16;
inline constexpr std::int64_t kLogitBlock = 64;   // logits that are looked at together
inline constexpr std::int64_t kTokenTile = 16;    // tokens whose scores are computed together
inline constexpr std::int64_t kTokensAhead = 64;  // as many keys or values at most are fetched before they are read

// How weights lie in a panel: 16 rows for each column, for each pair of columns (bf16), for four (bytes) or for eight
// (nibbles: the low ones are columns 0 to 3, the high ones 4 to 7), so that lane r of a vector is row r. Bytes of kInt8
// are unsigned, 128 for zero.
enum class PanelKind { kF32, kF16, kBf16, kFp8, kInt8, kInt4, kNvfp4 };
enum class ScaleKind { kNone, kF32, kBf16, kF16, kFp8 };

// Packed weights, as kernels see them. Columns are cut into blocks of equal length with one scale (and zero) for each
// row; a block that is not full is padded by columns whose input is zero.
struct PanelView {
  PanelKind kind = PanelKind::kF32;
  ScaleKind scale_kind = ScaleKind::kNone;
  bool has_zeros = false;
  std::int64_t block = 0;   // columns
  std::int64_t blocks = 0;  // used; there may be room for more
  float global_scale = 1;
  const std::byte* data = nullptr;
  std::size_t panel_bytes = 0, zeros_at = 0, values_at = 0;  // of one panel, and inside of it
};

// Input rows as the weights want them: in their order of columns, padded, in one of three forms.
struct InputRows {
  std::int64_t columns = 0;  // block * blocks
  std::int64_t blocks = 0;
  const float* f32 = nullptr;
  const std::uint16_t* bf16 = nullptr;
  // x is about i8 * scale, one scale for each block of a row; sums are those of the integers.
  const std::int8_t* i8 = nullptr;
  const float* scales = nullptr;
  const std::int32_t* sums = nullptr;
};

// out[i, lane] = product of row `lane` of the panel with row rows[i] of the input.
using MultiplyPanel = void (*)(const PanelView& weights, std::int64_t panel, const InputRows& x,
                               const std::int32_t* rows, std::int64_t count, float* out);

enum class CacheKind { kF32, kBf16, kF16 };

// One query head in a split of its keys.
struct AttentionHead {
  const float* q = nullptr;  // padded to whole vectors by zeros
  std::int64_t begin = 0;    // which tokens of the split it sees
  std::int64_t end = 0;
  float* partial = nullptr;  // max of the scores, sum of the exponentials, then the weighted sum of values
};
struct AttentionSplit {
  // The keys of all tokens, then their values, then kTokensAhead places of what is read next, which are only fetched.
  const std::byte* const* places = nullptr;
  std::int64_t tokens = 0;
  std::int64_t width = 0;   // D
  std::int64_t padded = 0;  // D up to whole vectors
  CacheKind kind = CacheKind::kF32;
  float scale = 1;
  AttentionHead* heads = nullptr;
  std::int64_t count = 0;
  float* scores = nullptr;  // room for count x tokens up to a whole tile
};

struct Kernels {
  const char* name = "";
  MultiplyPanel multiply_f32 = nullptr;   // any kind of panel
  MultiplyPanel multiply_i8 = nullptr;    // kInt4 and kInt8
  MultiplyPanel multiply_bf16 = nullptr;  // kBf16; null where the processor has no such instruction
  // One row in the int8 form; x is padded.
  void (*quantize)(const float* x, std::int64_t block, std::int64_t blocks, std::int8_t* to, float* scales,
                   std::int32_t* sums) = nullptr;
  void (*to_bf16)(const float* x, std::int64_t count, std::uint16_t* to) = nullptr;  // count: whole vectors
  // residual += x, where x is given; the sum of the residual's squares. Then y = x * factor * weight: a norm.
  float (*add_and_square)(const float* x, std::int64_t width, float* residual) = nullptr;
  void (*scale_row)(const float* x, const float* weight, float factor, std::int64_t width, float* y) = nullptr;
  // y[i] = silu(gate[i]) * up[i]; count: whole vectors.
  void (*swiglu)(const float* gate, const float* up, std::int64_t count, float* y) = nullptr;
  void (*attend)(const AttentionSplit& split) = nullptr;
  // The largest of each block of logits.
  void (*block_maxima)(const float* x, std::int64_t blocks, float* to) = nullptr;
  // Which of a block are not below it (bit i: element i); NaN is not below anything.
  std::uint64_t (*not_below)(const float* x, float least) = nullptr;
  // The sum of exp(x[i] * scale - max) in eight running sums, the same bits on every instruction set.
  double (*sum_of_exponentials)(const float* x, std::int64_t count, double scale, double max) = nullptr;
  // The sum of 64-bit words, as fast as memory gives them, with and without fetching ahead; bytes: a multiple of 512.
  std::uint64_t (*read)(const void* from, std::size_t bytes) = nullptr;
  std::uint64_t (*read_plainly)(const void* from, std::size_t bytes) = nullptr;
};

// Those of this program, whether or not this processor can run them; null where they are of another kind of machine.
const Kernels* avx512_kernels();
const Kernels* avx512_near_kernels();
const Kernels* avx2_kernels();
const Kernels* neon_matrix_kernels();
const Kernels* neon_kernels();
const Kernels* plain_kernels();

}  // namespace yoke::ops::cpu
