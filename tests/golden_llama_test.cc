// Weights and operations together: the smallest Llama that can be written from yoke/weights and yoke/ops, on one rank,
// against the logits and greedy tokens that transformers computed (tests/golden/*/golden.json says how).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/ref/softmax.h"
#include "yoke/weights/model_files.h"

namespace yoke {
namespace {

constexpr double kLogitErrorMost = 1e-4;  // relative to the largest logit
constexpr std::int64_t kPageTokens = 16;

class TinyLlama {
 public:
  TinyLlama(const std::filesystem::path& folder, Backend& ops) : files_(folder), ops_(ops) {
    heads_ = number("num_attention_heads");
    kv_heads_ = number("num_key_value_heads");
    width_ = number("head_dim");
    epsilon_ = from_document<float>(*files_.config().find("rms_norm_eps"));
    rope_ = rope_from_config(files_.config(), width_);
    for (std::int64_t i = 0; i < number("num_hidden_layers"); ++i) load_layer(fmt::format("model.layers.{}.", i));
    embedding_ = matrix("model.embed_tokens");
    head_ = matrix(files_.has_matrix("lm_head") ? "lm_head" : "model.embed_tokens");
    norm_ = files_.load_tensor("model.norm.weight");
  }

  // Feeds tokens after those that came before; logits of all of them.
  Tensor feed(const std::vector<std::int32_t>& ids) {
    const auto T = static_cast<std::int64_t>(ids.size());
    const KvSequence sequence{pages_, context_, T};
    std::vector<std::int64_t> positions;
    for (std::int64_t t = 0; t < T; ++t) positions.push_back(context_ + t);
    const Tensor x = ops_.allocate({T, embedding_->columns()}, DType::kF32);
    ops_.embed(*embedding_, ids, x);
    for (const Layer& layer : layers_) {
      const KvView view{layer.keys, layer.values, {&sequence, 1}};
      ops_.add(attention(layer, normed(x, layer.attention_norm), positions, view), x);
      const Tensor h = normed(x, layer.mlp_norm);
      const Tensor gate = times(layer.gate, h);
      ops_.swiglu(gate, times(layer.up, h), gate);
      ops_.add(times(layer.down, gate), x);
    }
    context_ += T;
    return times(head_, normed(x, norm_));
  }

  void forget() { context_ = 0; }

 private:
  using Weight = std::unique_ptr<PackedMatrix>;
  struct Layer {
    Weight q, k, v, o, gate, up, down;
    Tensor attention_norm, mlp_norm;
    Tensor keys, values;
  };

  std::int64_t number(const char* key) const { return from_document<std::int64_t>(*files_.config().find(key)); }

  Weight matrix(const std::string& module) {
    const Matrix view = files_.load_matrix(module);
    Weight packed = ops_.pack(view);
    files_.drop(view);
    return packed;
  }

  void load_layer(const std::string& at) {
    Layer layer;
    layer.q = matrix(at + "self_attn.q_proj");
    layer.k = matrix(at + "self_attn.k_proj");
    layer.v = matrix(at + "self_attn.v_proj");
    layer.o = matrix(at + "self_attn.o_proj");
    layer.gate = matrix(at + "mlp.gate_proj");
    layer.up = matrix(at + "mlp.up_proj");
    layer.down = matrix(at + "mlp.down_proj");
    layer.attention_norm = files_.load_tensor(at + "input_layernorm.weight");
    layer.mlp_norm = files_.load_tensor(at + "post_attention_layernorm.weight");
    layer.keys = ops_.allocate({std::ssize(pages_), kv_heads_, kPageTokens, width_}, DType::kF32);
    layer.values = ops_.allocate(layer.keys.shape(), DType::kF32);
    layers_.push_back(std::move(layer));
  }

  Tensor times(const Weight& weight, const Tensor& x) {
    Tensor y = ops_.allocate({x.extent(0), weight->rows()}, DType::kF32);
    ops_.linear(*weight, x, y);
    return y;
  }

  Tensor normed(const Tensor& x, const Tensor& weight) {
    Tensor y = ops_.allocate(x.shape(), DType::kF32);
    ops_.rms_norm(x, weight, epsilon_, y);
    return y;
  }

  Tensor attention(const Layer& layer, const Tensor& x, const std::vector<std::int64_t>& positions,
                   const KvView& view) {
    const std::int64_t T = x.extent(0);
    const Tensor q = times(layer.q, x).reshaped({T, heads_, width_});
    const Tensor k = times(layer.k, x).reshaped({T, kv_heads_, width_});
    const Tensor v = times(layer.v, x).reshaped({T, kv_heads_, width_});
    ops_.rotate(q, positions, rope_);
    ops_.rotate(k, positions, rope_);
    ops_.store_kv(k, v, view);
    ops_.attend(q, view, q, {.scale = 1 / std::sqrt(static_cast<float>(width_))});
    return times(layer.o, q.reshaped({T, heads_ * width_}));
  }

  ModelFiles files_;
  Backend& ops_;
  std::int64_t heads_ = 0, kv_heads_ = 0, width_ = 0;
  float epsilon_ = 0;
  Rope rope_;
  std::vector<Layer> layers_;
  Weight embedding_, head_;
  Tensor norm_;
  std::vector<std::int32_t> pages_ = {3,  0,  2,  1,  5,  4,  7,  6,  9,  8,  11, 10, 13, 12,
                                      15, 14, 17, 16, 19, 18, 20, 21, 23, 22, 25, 24, 27, 26};
  std::int64_t context_ = 0;
};

double relative_error(const Tensor& logits, const Tensor& golden) {
  double largest = 0;
  double error = 0;
  for (std::int64_t i = 0; i < golden.count(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(golden.data<float>()[i])));
    error = std::max(error, std::abs(static_cast<double>(logits.data<float>()[i]) - golden.data<float>()[i]));
  }
  return error / largest;
}

std::int32_t greedy(const Tensor& logits) {
  const std::int64_t last = logits.extent(0) - 1;
  return static_cast<std::int32_t>(ref::argmax({logits.row<float>(last), static_cast<std::size_t>(logits.extent(1))}));
}

class GoldenLlama : public testing::TestWithParam<const char*> {
 protected:
  const std::filesystem::path folder_ = std::filesystem::path(YOKE_SOURCE_DIR) / GetParam();
  const Document cases_ = *parse_json(read_file(folder_ / "golden.json"), "golden.json").find("cases");
  const SafetensorsFile golden_{folder_ / "golden.safetensors"};
  std::unique_ptr<Backend> ops_ = make_backend("ref");
  TinyLlama llama_{folder_, *ops_};
};
INSTANTIATE_TEST_SUITE_P(All, GoldenLlama,
                         testing::Values("tests/golden/llama-f32", "tests/golden/llama-bf16-tied",
                                         "tests/golden/llama-w4a16", "tests/golden/llama-fp8",
                                         "tests/golden/llama-nvfp4", "models/nano"),
                         [](const auto& model) {
                           std::string name = std::filesystem::path(model.param).filename();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(GoldenLlama, LogitsAndGreedyTokensAreThoseOfTransformers) {
  for (std::size_t i = 0; i < cases_.items.size(); ++i) {
    const Document& one = cases_.items[i];
    const auto ids = from_document<std::vector<std::int32_t>>(*one.find("ids"));
    llama_.forget();
    Tensor logits = llama_.feed(ids);
    const Document* const expected = one.find("greedy");
    const std::string name = expected != nullptr ? fmt::format("logits.{}", i) : "logits.long_last";
    const Tensor golden = golden_.view(*golden_.find(name));
    const std::int64_t T = logits.extent(0);
    const double error = relative_error(logits.slice(0, {T - golden.extent(0), T}), golden);
    EXPECT_LT(error, kLogitErrorMost) << name;
    RecordProperty(name, fmt::format("{:.2e}", error));
    if (expected == nullptr) continue;
    std::vector<std::int32_t> tokens;
    for (std::size_t step = 0; step < expected->items.size(); ++step) {
      tokens.push_back(greedy(logits));
      if (step + 1 < expected->items.size()) logits = llama_.feed({tokens.back()});
    }
    EXPECT_EQ(tokens, from_document<std::vector<std::int32_t>>(*expected)) << name;
  }
}

TEST_P(GoldenLlama, ChunksOfAPromptChangeNoBit) {
  constexpr std::size_t kTokens = 100;
  constexpr std::size_t kChunk = 37;
  auto ids = from_document<std::vector<std::int32_t>>(*cases_.items.back().find("ids"));
  ids.resize(kTokens);
  const Tensor whole = llama_.feed(ids);
  llama_.forget();
  for (std::size_t begin = 0; begin < kTokens; begin += kChunk) {
    const auto chunk = std::span(ids).subspan(begin, std::min(kChunk, kTokens - begin));
    const Tensor part = llama_.feed({chunk.begin(), chunk.end()});
    EXPECT_EQ(std::memcmp(part.raw(), whole.row<float>(static_cast<std::int64_t>(begin)), part.bytes()), 0) << begin;
  }
}

}  // namespace
}  // namespace yoke
