// Every stored layout, written by hand as its own specification says, against the values it stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/rng_testing.h"
#include "yoke/weights/model_files.h"
#include "yoke/weights/model_testing.h"
#include "yoke/weights/values_testing.h"

namespace yoke::weights {
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

std::vector<tensor::Bf16> as_bf16(const std::vector<float>& values) {
  std::vector<tensor::Bf16> halves;
  for (const float value : values) halves.push_back(tensor::to_bf16(value));
  return halves;
}

float group_scale(const tensor::Matrix& matrix, std::int64_t r, std::int64_t group) {
  const tensor::Tensor one =
      matrix.scales.slice(0, {r / matrix.scale_rows, r / matrix.scale_rows + 1}).slice(1, {group, group + 1});
  const tensor::Tensor copy = one.copied();
  if (copy.type() == tensor::DType::kBf16) return tensor::to_float(copy.data<tensor::Bf16>()[0]);
  if (copy.type() == tensor::DType::kF8E4m3) return tensor::to_float(copy.data<tensor::F8E4m3>()[0]);
  return copy.data<float>()[0];
}

// The value of an int4 matrix by the words of matrix.h.
float int4_at(const tensor::Matrix& matrix, std::int64_t r, std::int64_t c) {
  const auto nibble = [](const tensor::Tensor& words, std::int64_t i, std::int64_t j, std::int64_t at) {
    const tensor::Tensor word = words.slice(0, {i, i + 1}).slice(1, {j, j + 1}).copied();
    return static_cast<int>(static_cast<std::uint32_t>(word.data<std::int32_t>()[0]) >> (4 * at) & 15U);
  };
  const std::int64_t group =
      matrix.has_order() ? matrix.order.copied().data<std::int32_t>()[c] : c / matrix.scale_columns;
  const int zero = matrix.has_zeros() ? nibble(matrix.zeros, r / 8, group, r % 8) + matrix.zero_offset : 8;
  return static_cast<float>(nibble(matrix.values, r, c / 8, c % 8) - zero) * group_scale(matrix, r, group);
}

std::vector<StoredTensor> packed(const Quantized& q) {
  return {stored("m.weight_packed", tensor::DType::kI32, {q.rows, (q.columns + 7) / 8},
                 pack_rows(q.rows, q.columns,
                           [&](auto r, auto c) { return q.u[static_cast<std::size_t>(r * q.columns + c)]; })),
          stored("m.weight_scale", tensor::DType::kBf16, {q.rows, q.groups}, as_bf16(q.scales)),
          stored<std::int64_t>("m.weight_shape", tensor::DType::kI64, {2}, {q.rows, q.columns})};
}

StoredTensor packed_zeros(const Quantized& q) {
  const auto turned = pack_rows(q.groups, q.rows, [&](auto g, auto r) { return q.zero(r, g); });
  return stored("m.weight_zero_point", tensor::DType::kI32, {(q.rows + 7) / 8, q.groups},
                transpose(turned, q.groups, (q.rows + 7) / 8));
}

TEST(LoadMatrix, SymmetricInt4InGroupsUnderBothConfigKeys) {
  const Quantized q(5, 48, 3);
  for (const char* key : {"quantization_config", "compression_config"}) {
    const ScratchDir scratch;
    write_model(scratch.path(), int4_config(key, "true"), packed(q));
    const ModelFiles files(scratch.path());
    const tensor::Matrix matrix = files.load_matrix("m");
    EXPECT_EQ(matrix.scale_columns, 16);
    EXPECT_FALSE(matrix.has_zeros());
    for (std::int64_t r = 0; r < 5; ++r) {
      for (std::int64_t c = 0; c < 48; ++c) ASSERT_EQ(int4_at(matrix, r, c), q.at(r, c, c / 16, 8)) << r << "," << c;
    }
    const tensor::Matrix part = files.load_matrix("m", tensor::Slice::columns({16, 48}));
    EXPECT_EQ(int4_at(part, 3, 20), q.at(3, 36, 2, 8));
    EXPECT_EQ(int4_at(files.load_matrix("m", tensor::Slice::rows({2, 5})), 1, 9), q.at(3, 9, 0, 8));
    EXPECT_ERROR(files.load_matrix("m", tensor::Slice::columns({0, 24})), ErrorCode::kInvalid,
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
  const tensor::Matrix part = files.load_matrix("m", tensor::Slice::rows({8, 19}));
  for (std::int64_t r = 0; r < 11; ++r) {
    for (std::int64_t c = 0; c < 32; ++c) ASSERT_EQ(int4_at(part, r, c), q.at(r + 8, c, c / 16, q.zero(r + 8, c / 16)));
  }
  EXPECT_ERROR(files.load_matrix("m", tensor::Slice::rows({4, 19})), ErrorCode::kInvalid,
               "would cut a quantization group");
}

TEST(LoadMatrix, AnOrderOfColumnsIsKeptUnlessItIsTheUsualOne) {
  const Quantized q(4, 32, 2);
  std::vector<std::int32_t> usual, mixed, beyond;
  for (int c = 0; c < 32; ++c) {
    usual.push_back(c / 16);
    mixed.push_back(c % 2);
    beyond.push_back(c % 3);
  }
  const auto load = [&](const std::vector<std::int32_t>& order, const tensor::Slice& slice) {
    const ScratchDir scratch;
    std::vector<StoredTensor> tensors = packed(q);
    tensors.push_back(stored("m.weight_g_idx", tensor::DType::kI32, {32}, order));
    write_model(scratch.path(), int4_config("quantization_config", "true"), tensors);
    return ModelFiles(scratch.path()).load_matrix("m", slice);
  };
  EXPECT_FALSE(load(usual, {}).has_order());
  EXPECT_FALSE(load(std::vector<std::int32_t>(32, -1), {}).has_order());
  const tensor::Matrix part = load(mixed, tensor::Slice::columns({8, 24}));
  EXPECT_EQ(int4_at(part, 2, 3), q.at(2, 11, 1, 8));
  EXPECT_ERROR(load(beyond, {}), ErrorCode::kInvalid, "names group 2 of 2");
}

TEST(LoadMatrix, PerChannelInt4WithAWidthThatFillsNoWord) {
  const Quantized q(3, 21, 1);
  const ScratchDir scratch;
  write_model(scratch.path(), int4_config("quantization_config", "true"), packed(q));
  const tensor::Matrix matrix = ModelFiles(scratch.path()).load_matrix("m");
  EXPECT_EQ(matrix.columns, 21);
  EXPECT_EQ(int4_at(matrix, 2, 20), q.at(2, 20, 0, 8));
}

TEST(LoadMatrix, GptqIsTheTransposeWithZerosLessOne) {
  const Quantized q(16, 32, 2);
  const auto load = [&](const std::string& extra) {
    const ScratchDir scratch;
    const auto words =
        pack_rows(q.rows, q.columns, [&](auto r, auto c) { return q.u[static_cast<std::size_t>(r * 32 + c)]; });
    write_model(scratch.path(),
                R"({"quantization_config":{"quant_method":"gptq","bits":4,"group_size":16)" + extra + "}}",
                {stored("m.qweight", tensor::DType::kI32, {4, 16}, transpose(words, 16, 4)),
                 stored("m.qzeros", tensor::DType::kI32, {2, 2},
                        pack_rows(2, 16, [&](auto g, auto r) { return q.zero(r, g) - 1; })),
                 stored("m.scales", tensor::DType::kBf16, {2, 16}, as_bf16(transpose(q.scales, 16, 2)))});
    return ModelFiles(scratch.path()).load_matrix("m");
  };
  const tensor::Matrix first = load("");
  const tensor::Matrix second = load(R"(,"checkpoint_format":"gptq_v2")");
  for (std::int64_t r = 0; r < 16; ++r) {
    for (std::int64_t c = 0; c < 32; ++c) {
      ASSERT_EQ(int4_at(first, r, c), q.at(r, c, c / 16, q.zero(r, c / 16)));
      ASSERT_EQ(int4_at(second, r, c), q.at(r, c, c / 16, q.zero(r, c / 16) - 1));
    }
  }
  const tensor::Matrix dense = first.sliced(tensor::Slice::rows({8, 16})).copied();
  EXPECT_EQ(int4_at(dense, 3, 30), q.at(11, 30, 1, q.zero(11, 1)));
}

TEST(LoadMatrix, Fp8WithOneScaleRowsAndBlocks) {
  const std::vector<std::uint8_t> values(6 * 8, 0x38);
  const auto load = [&](const char* scale_name, tensor::Shape scales, const std::string& config) {
    const ScratchDir scratch;
    write_model(scratch.path(), config,
                {stored("m.weight", tensor::DType::kF8E4m3, {6, 8}, values),
                 stored_f32(std::string("m.") + scale_name, scales)});
    return ModelFiles(scratch.path()).load_matrix("m");
  };
  EXPECT_EQ(group_scale(load("weight_scale", {1}, "{}"), 5, 0), 0.0F);
  EXPECT_EQ(group_scale(load("weight_scale", {}, "{}"), 5, 0), 0.0F);
  EXPECT_EQ(group_scale(load("weight_scale", {6, 1}, "{}"), 5, 0), 5.0F);
  EXPECT_EQ(group_scale(load("weight_scale", {6}, "{}"), 4, 0), 4.0F);
  const std::string blocks = R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[4,4]}})";
  const tensor::Matrix matrix = load("weight_scale_inv", {2, 2}, blocks);
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
                {stored<float>(std::string("m.") + global_name, tensor::DType::kF32, {1}, {4.0F}),
                 stored(std::string("m.") + packed_name, tensor::DType::kU8, {3, 16}, values),
                 stored("m.weight_scale", tensor::DType::kF8E4m3, {3, 2}, scales)});
    return ModelFiles(scratch.path()).load_matrix("m", tensor::Slice::columns({16, 32}));
  };
  const tensor::Matrix compressed = load("weight_packed", "weight_global_scale");
  EXPECT_EQ(compressed.format, tensor::MatrixFormat::kNvfp4);
  EXPECT_EQ(compressed.columns, 16);
  EXPECT_EQ(compressed.global_scale, 0.25F);
  EXPECT_EQ(load("weight", "weight_scale_2").global_scale, 4.0F);
}

// Of compressed-tensors' packing: 128 is added, four to a word, zeros along rows.
TEST(LoadMatrix, PackedInt8HasFourToAWordAndItsZerosAlongRows) {
  constexpr std::int64_t kRows = 6, kColumns = 18, kGroups = 2;
  std::vector<std::uint8_t> words(kRows * 20), zeros(8 * kGroups);
  Random random(8);
  for (std::uint8_t& byte : words) byte = static_cast<std::uint8_t>(random.below(256));
  for (std::uint8_t& byte : zeros) byte = static_cast<std::uint8_t>(random.below(256));
  std::string config = int4_config("quantization_config", "false");
  config.replace(config.find("\"num_bits\":4"), 12, "\"num_bits\":8");
  const std::vector<float> scales = {1, 2, 4, 8, 0.5F, 3, 5, 6, 7, 9, 10, 11};
  const ScratchDir scratch;
  write_model(scratch.path(), config,
              {stored("m.weight_packed", tensor::DType::kI32, {kRows, 5}, words),
               stored("m.weight_scale", tensor::DType::kBf16, {kRows, kGroups}, as_bf16(scales)),
               stored("m.weight_zero_point", tensor::DType::kI32, {2, kGroups}, zeros),
               stored<std::int64_t>("m.weight_shape", tensor::DType::kI64, {2}, {kRows, kColumns})});
  const tensor::Matrix matrix = ModelFiles(scratch.path()).load_matrix("m", tensor::Slice::rows({1, 6}));
  EXPECT_EQ(matrix.format, tensor::MatrixFormat::kInt8);
  const std::vector<float> values = matrix_values(matrix);
  ASSERT_EQ(values.size(), 5U * kColumns);
  for (std::int64_t r = 1; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const std::int64_t group = c / 16;
      const int zero = zeros[static_cast<std::size_t>((r / 4 * kGroups + group) * 4 + r % 4)];
      const auto code = static_cast<int>(words[static_cast<std::size_t>(r * 20 + c)]);
      ASSERT_EQ(values[static_cast<std::size_t>((r - 1) * kColumns + c)],
                static_cast<float>(code - zero) * scales[static_cast<std::size_t>(r * kGroups + group)])
          << r << "," << c;
    }
  }
}

TEST(LoadMatrix, PlainInt8HasAScaleForAllForEachRowOrForEachGroup) {
  const std::vector<std::int8_t> bytes = {-128, 127, 1, -1, 5, 6, 7, -8};
  const auto load = [&](const StoredTensor& scales, std::vector<StoredTensor> more = {}) {
    const ScratchDir scratch;
    more.push_back(stored("m.weight", tensor::DType::kI8, {2, 4}, bytes));
    more.push_back(scales);
    write_model(scratch.path(), "{}", more);
    return matrix_values(ModelFiles(scratch.path()).load_matrix("m"));
  };
  const auto scales = [](const tensor::Shape& shape, const std::vector<float>& values) {
    return stored("m.weight_scale", tensor::DType::kF32, shape, values);
  };
  EXPECT_EQ(load(scales({1}, {2})), (std::vector<float>{-256, 254, 2, -2, 10, 12, 14, -16}));
  EXPECT_EQ(load(scales({2, 1}, {2, 3})), (std::vector<float>{-256, 254, 2, -2, 15, 18, 21, -24}));
  EXPECT_EQ(load(scales({2, 2}, {1, 2, 3, 4})), (std::vector<float>{-128, 127, 2, -2, 15, 18, 28, -32}));
  EXPECT_EQ(load(scales({2, 1}, {1, 1}),
                 {stored<std::int8_t>("m.weight_zero_point", tensor::DType::kI8, {2, 1}, {-128, 127})}),
            (std::vector<float>{0, 255, 129, 127, -122, -121, -120, -135}));
  EXPECT_ERROR(load(scales({3, 1}, {1, 2, 3})), ErrorCode::kInvalid, "for 2 rows");
}

TEST(LoadMatrix, WhatDoesNotBelongTogetherIsReported) {
  const Quantized q(4, 32, 2);
  const auto reported = [&](const std::string& config, const std::vector<StoredTensor>& tensors, const char* module) {
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
  EXPECT_THAT(reported(int4_config("quantization_config", "false"), parts, "m"),
              HasSubstr("no tensor 'm.weight_zero_point'"));
  EXPECT_THAT(reported(config, {parts[0], parts[2]}, "m"), HasSubstr("no tensor 'm.weight_scale'"));
  EXPECT_THAT(reported(config, {parts[0], stored_f32("m.weight_scale", {4, 3})}, "m"), HasSubstr("has 3 groups"));
  EXPECT_THAT(
      reported(config, {parts[0], parts[1], stored<std::int64_t>("m.weight_shape", tensor::DType::kI64, {2}, {4, 99})},
               "m"),
      HasSubstr("is 4 x 99"));
  EXPECT_THAT(reported("{}", {stored<std::int8_t>("m.weight", tensor::DType::kI8, {1, 2}, {1, 2})}, "m"),
              HasSubstr("holds i8 values"));
  EXPECT_THAT(reported("{}", {stored_f32("m.weight", {3})}, "m"), HasSubstr("no matrix"));
  const auto nothing = stored<std::int32_t>("m.weight_packed", tensor::DType::kI32, {4, 0}, {});
  EXPECT_THAT(reported("{}", {nothing, stored_f32("m.weight_scale", {4, 2})}, "m"),
              HasSubstr("a matrix of i32 is needed"));
  std::string huge = config;
  huge.replace(huge.find("\"group_size\":16"), 15, "\"group_size\":9223372036854775807");
  EXPECT_THAT(reported(huge, parts, "m"), HasSubstr("has 2 groups"));
  EXPECT_THAT(reported("{}", {stored_f32("n.weight", {3, 1})}, "m"), HasSubstr("no tensor 'm.weight'"));
  std::string eight = config;
  eight.replace(eight.find("\"num_bits\":4"), 12, "\"num_bits\":8");
  EXPECT_THAT(reported(eight, parts, "m"), HasSubstr("is 4 x 32"));
  eight.replace(eight.find("\"num_bits\":8"), 12, "\"num_bits\":3");
  EXPECT_THAT(reported(eight, parts, "m"), HasSubstr("3-bit weights"));
}

TEST(LoadMatrix, IgnoredModulesArePlainAndAHeadMayBeQuantized) {
  const Quantized q(4, 32, 2);
  const ScratchDir scratch;
  auto tensors = packed(q);
  for (StoredTensor& tensor : tensors) tensor.declaration.name.replace(0, 1, "lm_head");
  tensors.push_back(stored_f32("block.gate.weight", {4, 4}));
  write_model(scratch.path(), int4_config("quantization_config", "true"), tensors);
  const ModelFiles files(scratch.path());
  EXPECT_EQ(files.load_matrix("block.gate").format, tensor::MatrixFormat::kPlain);
  EXPECT_ERROR(files.load_matrix("lm_head"), ErrorCode::kInvalid, "by config.json 'lm_head' is not quantized")
      << "it is said not to be quantized, and is";
  EXPECT_TRUE(files.has_matrix("lm_head"));
  const ScratchDir other;
  std::string config = int4_config("quantization_config", "true");
  config.replace(config.find("\"lm_head\","), 10, "");
  write_model(other.path(), config, tensors);
  EXPECT_EQ(ModelFiles(other.path()).load_matrix("lm_head").format, tensor::MatrixFormat::kInt4);
}

}  // namespace
}  // namespace yoke::weights
