// Every stored layout, written by hand as its own specification says, against the values it stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/rng_testing.h"
#include "yoke/weights/model_files.h"
#include "yoke/weights/model_testing.h"

namespace yoke {
namespace {

using testing::HasSubstr;

constexpr const char* kInt4Config = R"({"KEY":{"quant_method":"compressed-tensors","format":"pack-quantized",
    "ignore":["lm_head","re:.*gate$"],"config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,
    "type":"int","symmetric":SYMMETRIC,"strategy":"group","group_size":16}}}}})";

std::string int4_config(const std::string& key, const std::string& symmetric) {
  std::string text = kInt4Config;
  text.replace(text.find("KEY"), 3, key);
  text.replace(text.find("SYMMETRIC"), 9, symmetric);
  return text;
}

// Quantized numbers before they are packed: u - z, and a scale for each (row, group).
struct Quantized {
  std::int64_t rows, columns, groups;
  std::vector<int> u, z;      // [rows, columns], [rows, groups]
  std::vector<float> scales;  // [rows, groups], exact in bf16 and f16

  Quantized(std::int64_t n, std::int64_t k, std::int64_t g) : rows(n), columns(k), groups(g) {
    Random random(7);
    for (std::int64_t i = 0; i < n * k; ++i) u.push_back(static_cast<int>(random.below(16)));
    for (std::int64_t i = 0; i < n * g; ++i) z.push_back(static_cast<int>(1 + random.below(15)));
    for (std::int64_t i = 0; i < n * g; ++i) scales.push_back(static_cast<float>(1 + random.below(7)) / 8);
  }
  float at(std::int64_t r, std::int64_t c, std::int64_t group, int zero) const {
    return static_cast<float>(u[static_cast<std::size_t>(r * columns + c)] - zero) *
           scales[static_cast<std::size_t>(r * groups + group)];
  }
  int zero(std::int64_t r, std::int64_t group) const { return z[static_cast<std::size_t>(r * groups + group)]; }
};

// Nibbles along one axis of [outer, inner], packed into words little end first; `along_outer`: eight rows to a word.
template <class At>
std::vector<std::int32_t> pack_rows(std::int64_t rows, std::int64_t columns, At at) {
  std::vector<std::int32_t> words;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; c += 8) {
      std::uint32_t word = 0;
      for (std::int64_t j = 0; j < 8 && c + j < columns; ++j)
        word |= static_cast<std::uint32_t>(at(r, c + j)) << (4 * j);
      words.push_back(static_cast<std::int32_t>(word));
    }
  }
  return words;
}

template <class T>
std::vector<T> transpose(const std::vector<T>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<T> turned;
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) turned.push_back(values[static_cast<std::size_t>(r * columns + c)]);
  }
  return turned;
}

std::vector<Bf16> as_bf16(const std::vector<float>& values) {
  std::vector<Bf16> halves;
  for (const float value : values) halves.push_back(to_bf16(value));
  return halves;
}

float group_scale(const Matrix& matrix, std::int64_t r, std::int64_t group) {
  const Tensor one =
      matrix.scales.slice(0, {r / matrix.scale_rows, r / matrix.scale_rows + 1}).slice(1, {group, group + 1});
  const Tensor copy = one.copied();
  if (copy.type() == DType::kBf16) return to_float(copy.data<Bf16>()[0]);
  if (copy.type() == DType::kF8E4m3) return to_float(copy.data<F8E4m3>()[0]);
  return copy.data<float>()[0];
}

// The value of an int4 matrix by the words of matrix.h.
float int4_at(const Matrix& matrix, std::int64_t r, std::int64_t c) {
  const auto nibble = [](const Tensor& words, std::int64_t i, std::int64_t j, std::int64_t at) {
    const Tensor word = words.slice(0, {i, i + 1}).slice(1, {j, j + 1}).copied();
    return static_cast<int>(static_cast<std::uint32_t>(word.data<std::int32_t>()[0]) >> (4 * at) & 15U);
  };
  const std::int64_t group =
      matrix.has_order() ? matrix.order.copied().data<std::int32_t>()[c] : c / matrix.scale_columns;
  const int zero = matrix.has_zeros() ? nibble(matrix.zeros, r / 8, group, r % 8) + matrix.zero_offset : 8;
  return static_cast<float>(nibble(matrix.values, r, c / 8, c % 8) - zero) * group_scale(matrix, r, group);
}

std::vector<StoredTensor> packed(const Quantized& q) {
  return {stored("m.weight_packed", DType::kI32, {q.rows, (q.columns + 7) / 8},
                 pack_rows(q.rows, q.columns,
                           [&](auto r, auto c) { return q.u[static_cast<std::size_t>(r * q.columns + c)]; })),
          stored("m.weight_scale", DType::kBf16, {q.rows, q.groups}, as_bf16(q.scales)),
          stored<std::int64_t>("m.weight_shape", DType::kI64, {2}, {q.rows, q.columns})};
}

StoredTensor packed_zeros(const Quantized& q) {
  const auto turned = pack_rows(q.groups, q.rows, [&](auto g, auto r) { return q.zero(r, g); });
  return stored("m.weight_zero_point", DType::kI32, {(q.rows + 7) / 8, q.groups},
                transpose(turned, q.groups, (q.rows + 7) / 8));
}

TEST(LoadMatrix, SymmetricInt4InGroupsUnderBothConfigKeys) {
  const Quantized q(5, 48, 3);
  for (const char* key : {"quantization_config", "compression_config"}) {
    const ScratchDir scratch;
    write_model(scratch.path(), int4_config(key, "true"), packed(q));
    const ModelFiles files(scratch.path());
    const Matrix matrix = files.load_matrix("m");
    EXPECT_EQ(matrix.scale_columns, 16);
    EXPECT_FALSE(matrix.has_zeros());
    for (std::int64_t r = 0; r < 5; ++r) {
      for (std::int64_t c = 0; c < 48; ++c) ASSERT_EQ(int4_at(matrix, r, c), q.at(r, c, c / 16, 8)) << r << "," << c;
    }
    const Matrix part = files.load_matrix("m", Slice::columns({16, 48}));
    EXPECT_EQ(int4_at(part, 3, 20), q.at(3, 36, 2, 8));
    EXPECT_EQ(int4_at(files.load_matrix("m", Slice::rows({2, 5})), 1, 9), q.at(3, 9, 0, 8));
    EXPECT_ERROR(files.load_matrix("m", Slice::columns({0, 24})), ErrorCode::kInvalid,
                 "would cut a quantization group");
  }
}

TEST(LoadMatrix, AsymmetricInt4HasItsZerosPackedAlongRows) {
  const Quantized q(19, 32, 2);
  const ScratchDir scratch;
  std::vector<StoredTensor> tensors = packed(q);
  tensors.push_back(packed_zeros(q));
  write_model(scratch.path(), int4_config("quantization_config", "false"), tensors);
  const ModelFiles files(scratch.path());
  const Matrix part = files.load_matrix("m", Slice::rows({8, 19}));
  for (std::int64_t r = 0; r < 11; ++r) {
    for (std::int64_t c = 0; c < 32; ++c) ASSERT_EQ(int4_at(part, r, c), q.at(r + 8, c, c / 16, q.zero(r + 8, c / 16)));
  }
  EXPECT_ERROR(files.load_matrix("m", Slice::rows({4, 19})), ErrorCode::kInvalid, "would cut a quantization group");
}

TEST(LoadMatrix, AnOrderOfColumnsIsKeptUnlessItIsTheUsualOne) {
  const Quantized q(4, 32, 2);
  std::vector<std::int32_t> usual, mixed, beyond;
  for (int c = 0; c < 32; ++c) {
    usual.push_back(c / 16);
    mixed.push_back(c % 2);
    beyond.push_back(c % 3);
  }
  const auto load = [&](const std::vector<std::int32_t>& order, const Slice& slice) {
    const ScratchDir scratch;
    std::vector<StoredTensor> tensors = packed(q);
    tensors.push_back(stored("m.weight_g_idx", DType::kI32, {32}, order));
    write_model(scratch.path(), int4_config("quantization_config", "true"), tensors);
    return ModelFiles(scratch.path()).load_matrix("m", slice);
  };
  EXPECT_FALSE(load(usual, {}).has_order());
  EXPECT_FALSE(load(std::vector<std::int32_t>(32, -1), {}).has_order());
  const Matrix part = load(mixed, Slice::columns({8, 24}));
  EXPECT_EQ(int4_at(part, 2, 3), q.at(2, 11, 1, 8));
  EXPECT_ERROR(load(beyond, {}), ErrorCode::kInvalid, "names group 2 of 2");
}

TEST(LoadMatrix, PerChannelInt4WithAWidthThatFillsNoWord) {
  const Quantized q(3, 21, 1);
  const ScratchDir scratch;
  write_model(scratch.path(), int4_config("quantization_config", "true"), packed(q));
  const Matrix matrix = ModelFiles(scratch.path()).load_matrix("m");
  EXPECT_EQ(matrix.columns, 21);
  EXPECT_EQ(int4_at(matrix, 2, 20), q.at(2, 20, 0, 8));
}

TEST(LoadMatrix, GptqIsTheTransposeWithZerosLessOne) {
  const Quantized q(16, 32, 2);
  const auto load = [&](const std::string& extra) {
    const ScratchDir scratch;
    const auto words =
        pack_rows(q.rows, q.columns, [&](auto r, auto c) { return q.u[static_cast<std::size_t>(r * 32 + c)]; });
    write_model(
        scratch.path(), R"({"quantization_config":{"quant_method":"gptq","bits":4,"group_size":16)" + extra + "}}",
        {stored("m.qweight", DType::kI32, {4, 16}, transpose(words, 16, 4)),
         stored("m.qzeros", DType::kI32, {2, 2}, pack_rows(2, 16, [&](auto g, auto r) { return q.zero(r, g) - 1; })),
         stored("m.scales", DType::kBf16, {2, 16}, as_bf16(transpose(q.scales, 16, 2)))});
    return ModelFiles(scratch.path()).load_matrix("m");
  };
  const Matrix first = load("");
  const Matrix second = load(R"(,"checkpoint_format":"gptq_v2")");
  for (std::int64_t r = 0; r < 16; ++r) {
    for (std::int64_t c = 0; c < 32; ++c) {
      ASSERT_EQ(int4_at(first, r, c), q.at(r, c, c / 16, q.zero(r, c / 16)));
      ASSERT_EQ(int4_at(second, r, c), q.at(r, c, c / 16, q.zero(r, c / 16) - 1));
    }
  }
  const Matrix dense = first.sliced(Slice::rows({8, 16})).copied();
  EXPECT_EQ(int4_at(dense, 3, 30), q.at(11, 30, 1, q.zero(11, 1)));
}

TEST(LoadMatrix, Fp8WithOneScaleRowsAndBlocks) {
  const std::vector<std::uint8_t> values(6 * 8, 0x38);
  const auto load = [&](const char* scale_name, Shape scales, const std::string& config) {
    const ScratchDir scratch;
    write_model(
        scratch.path(), config,
        {stored("m.weight", DType::kF8E4m3, {6, 8}, values), stored_f32(std::string("m.") + scale_name, scales)});
    return ModelFiles(scratch.path()).load_matrix("m");
  };
  EXPECT_EQ(group_scale(load("weight_scale", {1}, "{}"), 5, 0), 0.0F);
  EXPECT_EQ(group_scale(load("weight_scale", {}, "{}"), 5, 0), 0.0F);
  EXPECT_EQ(group_scale(load("weight_scale", {6, 1}, "{}"), 5, 0), 5.0F);
  EXPECT_EQ(group_scale(load("weight_scale", {6}, "{}"), 4, 0), 4.0F);
  const std::string blocks = R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[4,4]}})";
  const Matrix matrix = load("weight_scale_inv", {2, 2}, blocks);
  EXPECT_EQ(matrix.column_step(), 4);
  EXPECT_EQ(group_scale(matrix, 5, 1), 3.0F);
  EXPECT_ERROR(load("weight_scale", {2, 3}, "{}"), ErrorCode::kInvalid,
               "neither one scale, nor one for each of 6 rows");
}

TEST(LoadMatrix, Nvfp4DividesInOneDialectAndMultipliesInTheOther) {
  const std::vector<std::uint8_t> values(3 * 16, 0x21);
  const std::vector<std::uint8_t> scales(3 * 2, 0x38);
  const auto load = [&](const char* packed_name, const char* global_name) {
    const ScratchDir scratch;
    write_model(scratch.path(), "{}",
                {stored<float>(std::string("m.") + global_name, DType::kF32, {1}, {4.0F}),
                 stored(std::string("m.") + packed_name, DType::kU8, {3, 16}, values),
                 stored("m.weight_scale", DType::kF8E4m3, {3, 2}, scales)});
    return ModelFiles(scratch.path()).load_matrix("m", Slice::columns({16, 32}));
  };
  const Matrix compressed = load("weight_packed", "weight_global_scale");
  EXPECT_EQ(compressed.format, MatrixFormat::kNvfp4);
  EXPECT_EQ(compressed.columns, 16);
  EXPECT_EQ(compressed.global_scale, 0.25F);
  EXPECT_EQ(load("weight", "weight_scale_2").global_scale, 4.0F);
}

TEST(LoadMatrix, WhatDoesNotBelongTogetherIsTold) {
  const Quantized q(4, 32, 2);
  const auto told = [&](const std::string& config, const std::vector<StoredTensor>& tensors, const char* module) {
    const ScratchDir scratch;
    write_model(scratch.path(), config, tensors);
    try {
      ModelFiles(scratch.path()).load_matrix(module);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  const std::string config = int4_config("quantization_config", "true");
  const auto parts = packed(q);
  EXPECT_THAT(told(int4_config("quantization_config", "false"), parts, "m"),
              HasSubstr("no tensor 'm.weight_zero_point'"));
  EXPECT_THAT(told(config, {parts[0], parts[2]}, "m"), HasSubstr("no tensor 'm.weight_scale'"));
  EXPECT_THAT(told(config, {parts[0], stored_f32("m.weight_scale", {4, 3})}, "m"), HasSubstr("has 3 groups"));
  EXPECT_THAT(
      told(config, {parts[0], parts[1], stored<std::int64_t>("m.weight_shape", DType::kI64, {2}, {4, 99})}, "m"),
      HasSubstr("says 4 x 99"));
  EXPECT_THAT(told("{}", {stored<std::int8_t>("m.weight", DType::kI8, {1, 2}, {1, 2})}, "m"),
              HasSubstr("holds i8 values"));
  EXPECT_THAT(told("{}", {stored_f32("m.weight", {3})}, "m"), HasSubstr("no matrix"));
  const auto nothing = stored<std::int32_t>("m.weight_packed", DType::kI32, {4, 0}, {});
  EXPECT_THAT(told("{}", {nothing, stored_f32("m.weight_scale", {4, 2})}, "m"), HasSubstr("a matrix of i32 is needed"));
  std::string huge = config;
  huge.replace(huge.find("\"group_size\":16"), 15, "\"group_size\":9223372036854775807");
  EXPECT_THAT(told(huge, parts, "m"), HasSubstr("has 2 groups"));
  EXPECT_THAT(told("{}", {stored_f32("n.weight", {3, 1})}, "m"), HasSubstr("no tensor 'm.weight'"));
  std::string eight = config;
  eight.replace(eight.find("\"num_bits\":4"), 12, "\"num_bits\":8");
  EXPECT_THAT(told(eight, parts, "m"), HasSubstr("8-bit weights"));
}

TEST(LoadMatrix, IgnoredModulesArePlainAndAHeadMayBeQuantized) {
  const Quantized q(4, 32, 2);
  const ScratchDir scratch;
  auto tensors = packed(q);
  for (StoredTensor& tensor : tensors) tensor.declaration.name.replace(0, 1, "lm_head");
  tensors.push_back(stored_f32("block.gate.weight", {4, 4}));
  write_model(scratch.path(), int4_config("quantization_config", "true"), tensors);
  const ModelFiles files(scratch.path());
  EXPECT_EQ(files.load_matrix("block.gate").format, MatrixFormat::kPlain);
  EXPECT_ERROR(files.load_matrix("lm_head"), ErrorCode::kInvalid, "says that 'lm_head' is not quantized")
      << "it is said not to be quantized, and is";
  EXPECT_TRUE(files.has_matrix("lm_head"));
  const ScratchDir other;
  std::string config = int4_config("quantization_config", "true");
  config.replace(config.find("\"lm_head\","), 10, "");
  write_model(other.path(), config, tensors);
  EXPECT_EQ(ModelFiles(other.path()).load_matrix("lm_head").format, MatrixFormat::kInt4);
}

}  // namespace
}  // namespace yoke
