#include "yoke/plan/format.h"

#include <array>

namespace yoke::plan {
namespace {

constexpr std::array kFormats = {
    WeightFormat{"bf16", 16, 16, 16, 16, Arithmetic::kBf16, "two bytes"},
    WeightFormat{"f32", 32, 32, 32, 32, Arithmetic::kBf16, "four bytes"},
    WeightFormat{"fp8", 8.002, 8.002, 16, 16, Arithmetic::kFp8, "8 + 32/16384 for blocks of 128 x 128; head in BF16"},
    WeightFormat{"mxfp8", 8.25, 8.25, 16, 16, Arithmetic::kFp8, "8 + 8/32; head in BF16"},
    WeightFormat{"nvfp4", 4.5, 4.5, 16, 16, Arithmetic::kFp4, "4 + 8/16; head in BF16"},
    WeightFormat{"mxfp4", 4.25, 16, 16, 16, Arithmetic::kFp4,
                 "4 + 8/32 for experts; attention and head in BF16, as gpt-oss is published"},
    WeightFormat{"mxfp4-all", 4.25, 4.25, 4.25, 16, Arithmetic::kFp4, "attention and head quantized too"},
    WeightFormat{"mxfp4-gguf", 4.25, 8.5, 8.5, 8.5, Arithmetic::kFp4, "experts 4 + 8/32; attention and head in Q8_0"},
    WeightFormat{"fp8-fp4", 4.25, 8.002, 16, 16, Arithmetic::kFp4, "experts in FP4, attention in FP8"},
    WeightFormat{"int4", 4.156, 4.156, 16, 16, Arithmetic::kBf16, "4 + 16/128 + 4/128 (AWQ, GPTQ, w4a16); head in BF16",
                 128},
    WeightFormat{"int4-g64", 4.25, 4.25, 16, 16, Arithmetic::kBf16, "4 + 16/64; head in BF16", 64},
    WeightFormat{"int4-g32", 4.5, 4.5, 16, 16, Arithmetic::kBf16, "4 + 16/32; head in BF16", 32},
    WeightFormat{"int4-int8", 4.156, 8.125, 16, 16, Arithmetic::kBf16, "attention in 8 bits"},
    WeightFormat{"q8_0", 8.5, 8.5, 8.5, 8.5, Arithmetic::kBf16, "32 values of 8 bits and a scale of 16"},
    WeightFormat{"q4_0", 4.5, 4.5, 6.5625, 4.5, Arithmetic::kBf16, "32 values of 4 bits and a scale of 16"},
    WeightFormat{"q4_k_m", 4.85, 4.85, 6.5625, 4.5, Arithmetic::kBf16, "4.85 on average (llama.cpp quantize)"},
    WeightFormat{"q6_k", 6.5625, 6.5625, 6.5625, 6.5625, Arithmetic::kBf16, "block structure"},
};

struct OtherName {
  std::string_view other;
  std::string_view name;
};
constexpr std::array kOtherNames = {OtherName{"f16", "bf16"},   OtherName{"fp16", "bf16"}, OtherName{"fp4", "nvfp4"},
                                    OtherName{"w4a16", "int4"}, OtherName{"awq", "int4"},  OtherName{"gptq", "int4"},
                                    OtherName{"q8", "q8_0"},    OtherName{"q4", "q4_k_m"}, OtherName{"int8", "fp8"},
                                    OtherName{"float8", "fp8"}, OtherName{"fp32", "f32"},  OtherName{"4bit", "int4"}};

const Document* child(const Document* map, std::string_view key) { return map ? map->find(key) : nullptr; }

// Small groups take more bytes, and on a processor more time. A group of -1 is a whole row.
const WeightFormat* int4_format(const Document* group_size) {
  const std::string_view size = group_size != nullptr ? std::string_view(group_size->text) : std::string_view();
  if (size == "16" || size == "32") return find_format("int4-g32");
  return find_format(size == "64" ? "int4-g64" : "int4");
}

}  // namespace

const WeightFormat* find_format(std::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (other.other == name) name = other.name;
  }
  for (const WeightFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const WeightFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

const WeightFormat* format_of_config(const Document& config) {
  const Document* const quantization = config.find("quantization_config");
  if (quantization == nullptr || quantization->kind != Document::Kind::kMap) return find_format("bf16");
  const Document* const method = quantization->find("quant_method");
  const std::string name = method ? method->text : "";
  if (name == "mxfp4" || name == "fp8") return find_format(name);
  if (name == "awq" || name == "gptq" || name == "auto-round") return int4_format(quantization->find("group_size"));
  if (name == "modelopt") {
    const Document* const algorithm = quantization->find("quant_algo");
    return find_format(algorithm && algorithm->text == "FP8" ? "fp8" : "nvfp4");
  }
  if (name == "compressed-tensors") {
    const Document* const format = quantization->find("format");
    if (format && format->text.find("nvfp4") != std::string::npos) return find_format("nvfp4");
    if (format && format->text.find("float") != std::string::npos) return find_format("fp8");
    const Document* const groups = quantization->find("config_groups");
    const Document* const first = groups && !groups->fields.empty() ? &groups->fields.front().second : nullptr;
    const Document* const weights = child(first, "weights");
    const Document* const bits = child(weights, "num_bits");
    return bits && bits->text == "8" ? find_format("fp8") : int4_format(child(weights, "group_size"));
  }
  return nullptr;
}

double stored_bytes(const spec::ModelCount& count, const spec::ModelFacts& model, const WeightFormat& format) {
  const auto wide = [](std::int64_t value) { return static_cast<double>(value); };
  const double linear = wide(count.rest - count.attention) + wide(model.experts) * wide(count.expert);
  return (linear * format.linear_bits + wide(count.attention) * format.attention_bits +
          wide(count.head) * format.head_bits + wide(count.embedding_only) * format.embedding_bits) /
         8;
}

}  // namespace yoke::plan
