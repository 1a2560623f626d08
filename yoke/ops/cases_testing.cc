#include "yoke/ops/cases_testing.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "yoke/base/check.h"
#include "yoke/ops/cpu/instructions.h"
#include "yoke/ops/cuda/backend.h"
#include "yoke/ops/ref/dequantize.h"

namespace yoke::ops {
namespace {

using Zeros = MatrixCase::Zeros;
using Order = MatrixCase::Order;
using Layout = MatrixCase::Layout;

float between_minus_one_and_one(Random& random) { return static_cast<float>(random.uniform() * 2 - 1); }

// A tensor of random bits, or of random numbers in (0, 1] for scales.
tensor::Tensor random_bits(const tensor::Shape& shape, tensor::DType type, Random& random) {
  tensor::Tensor tensor = tensor::Tensor::empty(shape, type);
  std::byte* const bytes = tensor.mutable_raw();
  for (std::size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = static_cast<std::byte>(random.below(256));
  return tensor;
}

tensor::Tensor random_numbers(const tensor::Shape& shape, tensor::DType type, Random& random, float low) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (float& value : values) value = low + (1 - low) * static_cast<float>(random.uniform());
  tensor::Tensor tensor = tensor::Tensor::empty(shape, type);
  if (type == tensor::DType::kF8E4m3) {
    for (std::size_t i = 0; i < values.size(); ++i)
      tensor.mutable_data<tensor::F8E4m3>()[i] = tensor::to_f8e4m3(values[i]);
  } else {
    ref::from_floats(values, type, tensor.mutable_raw());
  }
  return tensor;
}

// The same matrix, stored by columns as GPTQ does.
tensor::Tensor stored_transposed(const tensor::Tensor& tensor) { return tensor.transposed().copied().transposed(); }

void add_integer_parts(tensor::Matrix& matrix, const MatrixCase& storage, std::int64_t groups, Random& random) {
  const bool is_int4 = storage.format == tensor::MatrixFormat::kInt4;
  const tensor::DType type = is_int4 ? tensor::DType::kI32 : storage.values;
  const std::int64_t per_value = is_int4 ? tensor::kNibblesPerWord : 1;
  matrix.values = random_bits({matrix.rows, tensor::ceil_divide(matrix.columns, per_value)}, type, random);
  if (storage.zeros != Zeros::kNone) {
    matrix.zeros = random_bits({tensor::ceil_divide(matrix.rows, per_value), groups}, type, random);
    matrix.zero_offset = storage.zeros == Zeros::kPackedLessOne ? 1 : 0;
  }
  if (storage.order == Order::kMixed) {
    matrix.order = tensor::Tensor::empty({matrix.columns}, tensor::DType::kI32);
    for (std::int32_t& group : matrix.order.mutable_span<std::int32_t>()) {
      group = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(groups)));
    }
  }
  if (storage.layout == Layout::kTransposed) {
    matrix.values = stored_transposed(matrix.values);
    if (matrix.has_zeros()) matrix.zeros = stored_transposed(matrix.zeros);
  }
}

}  // namespace

std::vector<BackendVariant> all_variants() {
  std::vector<BackendVariant> variants = exact_variants();
  for (const cpu::Kernels& kernels : cpu::usable_kernels()) {
    variants.push_back({fmt::format("cpu_{}_fast", kernels.name), "cpu", {.instructions = kernels.name}});
  }
  if (cuda::cuda_usable()) variants.push_back({"cuda_fast", "cuda", {}});
  return variants;
}

std::vector<BackendVariant> exact_variants() {
  std::vector<BackendVariant> variants = {{"ref", "ref", {}}};
  for (const cpu::Kernels& kernels : cpu::usable_kernels()) {
    variants.push_back({fmt::format("cpu_{}_exact", kernels.name),
                        "cpu",
                        {.arithmetic = Arithmetic::kExact, .instructions = kernels.name}});
  }
  if (cuda::cuda_usable()) variants.push_back({"cuda_exact", "cuda", {.arithmetic = Arithmetic::kExact}});
  return variants;
}

double tolerance(tensor::DType type, std::int64_t K, double scale) {
  const int mantissa_bits = type == tensor::DType::kF32 ? 23 : type == tensor::DType::kF16 ? 10 : 7;
  return 4 * std::ldexp(1.0, -mantissa_bits) * std::sqrt(static_cast<double>(std::max<std::int64_t>(K, 1))) * scale;
}

std::vector<MatrixCase> matrix_cases() {
  using F = tensor::MatrixFormat;
  using D = tensor::DType;
  return {
      {.name = "f32"},
      {.name = "bf16", .type = D::kBf16},
      {.name = "f16", .type = D::kF16},
      {.name = "f32_transposed", .layout = Layout::kTransposed},
      {.name = "int4_group128", .format = F::kInt4, .type = D::kBf16, .scale_columns = 128},
      {.name = "int4_group32_f16", .format = F::kInt4, .type = D::kF16, .scale_columns = 32},
      {.name = "int4_channel", .format = F::kInt4, .type = D::kBf16},
      {.name = "int4_zeros", .format = F::kInt4, .type = D::kBf16, .scale_columns = 32, .zeros = Zeros::kPacked},
      {.name = "int4_channel_zeros", .format = F::kInt4, .type = D::kF32, .zeros = Zeros::kPacked},
      {.name = "int4_order", .format = F::kInt4, .type = D::kBf16, .scale_columns = 32, .order = Order::kMixed},
      {.name = "int4_zeros_order",
       .format = F::kInt4,
       .type = D::kF16,
       .scale_columns = 64,
       .zeros = Zeros::kPacked,
       .order = Order::kMixed},
      {.name = "gptq",
       .format = F::kInt4,
       .type = D::kF16,
       .scale_columns = 128,
       .zeros = Zeros::kPackedLessOne,
       .layout = Layout::kTransposed},
      {.name = "int8_group32_f16", .format = F::kInt8, .type = D::kF16, .scale_columns = 32},
      {.name = "int8_channel", .format = F::kInt8, .type = D::kBf16},
      {.name = "int8_zeros_order",
       .format = F::kInt8,
       .scale_columns = 64,
       .zeros = Zeros::kPacked,
       .order = Order::kMixed},
      {.name = "int8_signed_zeros",
       .format = F::kInt8,
       .scale_columns = 128,
       .zeros = Zeros::kPacked,
       .values = D::kI8},
      {.name = "fp8_tensor", .format = F::kFp8, .scale_rows = 0},
      {.name = "fp8_channel", .format = F::kFp8, .type = D::kBf16},
      {.name = "fp8_block", .format = F::kFp8, .scale_rows = 16, .scale_columns = 32},
      {.name = "nvfp4", .format = F::kNvfp4, .type = D::kF8E4m3, .scale_columns = tensor::kNvfp4Block},
  };
}

std::int64_t column_step(const MatrixCase& storage) {
  return storage.format == tensor::MatrixFormat::kNvfp4 ? tensor::kNvfp4Block : 1;
}

tensor::Matrix random_matrix(const MatrixCase& storage, std::int64_t rows, std::int64_t columns, Random& random) {
  YOKE_CHECK(columns % column_step(storage) == 0, "{} columns of {}", columns, storage.name);
  if (storage.format == tensor::MatrixFormat::kPlain) {
    const tensor::Tensor values = random_numbers({rows, columns}, storage.type, random, -1);
    return tensor::plain_matrix(storage.layout == Layout::kTransposed ? stored_transposed(values) : values);
  }
  tensor::Matrix matrix{.format = storage.format, .rows = rows, .columns = columns};
  matrix.scale_rows = storage.scale_rows > 0 ? storage.scale_rows : std::max<std::int64_t>(rows, 1);
  matrix.scale_columns = storage.scale_columns > 0 ? storage.scale_columns : std::max<std::int64_t>(columns, 1);
  const std::int64_t groups = tensor::ceil_divide(columns, matrix.scale_columns);
  matrix.scales = random_numbers({tensor::ceil_divide(rows, matrix.scale_rows), groups}, storage.type, random, 0.1F);
  if (storage.layout == Layout::kTransposed) matrix.scales = stored_transposed(matrix.scales);
  if (storage.format == tensor::MatrixFormat::kInt4 || storage.format == tensor::MatrixFormat::kInt8) {
    add_integer_parts(matrix, storage, groups, random);
  }
  if (storage.format == tensor::MatrixFormat::kFp8)
    matrix.values = random_numbers({rows, columns}, tensor::DType::kF8E4m3, random, -1);
  if (storage.format == tensor::MatrixFormat::kNvfp4) {
    matrix.values = random_bits({rows, columns / 2}, tensor::DType::kU8, random);
    matrix.global_scale = 0.3F;
  }
  matrix.check();
  return matrix;
}

tensor::Tensor random_tensor(const tensor::Shape& shape, Random& random) {
  tensor::Tensor tensor = tensor::Tensor::empty(shape, tensor::DType::kF32);
  for (float& value : tensor.mutable_span<float>()) value = between_minus_one_and_one(random);
  return tensor;
}

HeldSlab hold(Backend& ops, const tensor::Tensor& tensor) {
  HeldSlab held = room(ops, tensor.shape(), tensor.type());
  const tensor::Tensor dense = tensor.copied();
  ops.upload({dense.raw(), dense.bytes()}, held.slab);
  return held;
}

HeldSlab room(Backend& ops, const tensor::Shape& shape, tensor::DType type) {
  HeldSlab held{ops.allocate(shape, type), {}};
  held.slab = held.memory->slab();
  return held;
}

tensor::Tensor fetch(Backend& ops, const Slab& slab) {
  tensor::Tensor tensor = tensor::Tensor::empty(slab.shape, slab.type);
  ops.download(slab, {tensor.mutable_raw(), tensor.bytes()});
  while (!ops.passed(ops.record())) {
  }
  return tensor;
}

Rope no_rope(std::int64_t width) { return {std::vector<float>(static_cast<std::size_t>(width / 2), 0.0F)}; }

std::vector<LinearSizes> linear_sizes() {
  return {{0, 7, 16},   {1, 1, 1},    {9, 3, 8},     {31, 5, 120}, {65, 2, 129},
          {64, 1, 40},  {1, 0, 32},   {2, 15, 127},  {3, 16, 128}, {5, 17, 129},
          {1, 31, 255}, {1, 32, 256}, {17, 33, 257}, {1, 8, 4096}, {4, 23, 1031}};
}

std::vector<RowSizes> row_sizes() {
  return {{0, 8}, {1, 1}, {1, 2}, {3, 15}, {2, 16}, {2, 17}, {5, 127}, {1, 128}, {65, 129}, {2, 4099}};
}

std::vector<AttentionCase> attention_cases() {
  using Lengths = std::vector<AttentionCase::Lengths>;
  return {
      {.name = "one_token", .sequences = Lengths{{0, 1}}},
      {.name = "nothing", .sequences = Lengths{{5, 0}}},
      {.name = "prompt", .sequences = Lengths{{0, 37}}},
      {.name = "chunk", .sequences = Lengths{{31, 18}}},
      {.name = "decode_batch", .sequences = Lengths{{0, 1}, {15, 1}, {16, 1}, {17, 1}, {255, 1}, {256, 1}, {600, 1}}},
      {.name = "mixed_batch", .sequences = Lengths{{3, 5}, {100, 1}, {0, 19}}, .heads = 8, .kv_heads = 2},
      {.name = "all_heads", .sequences = Lengths{{40, 3}}, .heads = 3, .kv_heads = 3, .width = 128},
      {.name = "one_kv_head", .sequences = Lengths{{40, 3}}, .heads = 5, .kv_heads = 1, .width = 2},
      {.name = "small_pages", .sequences = Lengths{{20, 3}, {7, 2}}, .page_tokens = 1},
      {.name = "window", .sequences = Lengths{{300, 3}, {2, 4}}, .window = 7},
      {.name = "bf16", .sequences = Lengths{{50, 2}}, .type = tensor::DType::kBf16},
      {.name = "f16", .sequences = Lengths{{50, 2}}, .type = tensor::DType::kF16},
  };
}

KvPages random_pages(const AttentionCase& attention, Random& random) {
  KvPages kv;
  std::int64_t count = 0;
  for (const auto& [context, fresh] : attention.sequences) {
    count += tensor::ceil_divide(context + fresh, attention.page_tokens);
  }
  kv.room = {.pages = count, .page_tokens = attention.page_tokens};
  const tensor::Shape shape{count, attention.kv_heads, attention.page_tokens, attention.width};
  for (tensor::Tensor* pages : {&kv.keys, &kv.values}) {
    *pages = tensor::Tensor::empty(shape, attention.type);
    std::vector<float> numbers(static_cast<std::size_t>(shape.count()));
    for (float& number : numbers) number = between_minus_one_and_one(random);
    ref::from_floats(numbers, attention.type, pages->mutable_raw());
  }
  std::vector<std::int32_t> free(static_cast<std::size_t>(count));
  std::iota(free.begin(), free.end(), 0);
  for (std::size_t i = free.size(); i > 1; --i) std::swap(free[i - 1], free[random.below(i)]);
  for (const auto& [context, fresh] : attention.sequences) {
    const std::int64_t taken = tensor::ceil_divide(context + fresh, attention.page_tokens);
    kv.pages.emplace_back(free.end() - taken, free.end());
    free.resize(free.size() - static_cast<std::size_t>(taken));
    kv.step.add_sequence(context, std::vector<std::int32_t>(static_cast<std::size_t>(fresh), 0), kv.pages.back());
  }
  return kv;
}

}  // namespace yoke::ops
