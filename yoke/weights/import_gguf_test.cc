// A GGUF file written here by its own specification, and what import makes of it.
#include "yoke/weights/import_gguf.h"

#include <gtest/gtest.h>

#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/rng_testing.h"
#include "yoke/weights/model_files.h"
#include "yoke/weights/values_testing.h"

namespace yoke::weights {
namespace {

constexpr std::int64_t kGgufWidth = 64, kHeads = 4, kKvHeads = 2, kHeadWidth = 16, kMlp = 96, kWords = 40, kLayers = 2;

// Writes what docs/gguf.md of ggml says.
class GgufWriter {
 public:
  template <class T>
  static void put(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void put_text(std::string& to, std::string_view text) {
    put(to, std::uint64_t{text.size()});
    to += text;
  }
  void text(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_text(keys_, value);
  }
  void number(std::string_view key, std::uint32_t value) {
    begin(key, 4);
    put(keys_, value);
  }
  void real(std::string_view key, float value) {
    begin(key, 6);
    put(keys_, value);
  }
  void flag(std::string_view key, bool value) {
    begin(key, 7);
    put(keys_, static_cast<std::uint8_t>(value ? 1 : 0));
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    begin(key, 9);
    put(keys_, std::uint32_t{8});
    put(keys_, std::uint64_t{values.size()});
    for (const std::string& value : values) put_text(keys_, value);
  }
  void numbers(std::string_view key, const std::vector<std::int32_t>& values) {
    begin(key, 9);
    put(keys_, std::uint32_t{5});
    put(keys_, std::uint64_t{values.size()});
    for (const std::int32_t value : values) put(keys_, value);
  }
  void bytes(std::string_view key, std::size_t count) {  // zeros
    begin(key, 9);
    put(keys_, std::uint32_t{0});
    put(keys_, std::uint64_t{count});
    keys_.append(count, '\0');
  }
  void tensor(std::string_view name, std::vector<std::int64_t> shape, std::uint32_t type, const std::string& bytes) {
    put_text(infos_, name);
    put(infos_, static_cast<std::uint32_t>(shape.size()));
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) put(infos_, *extent);
    put(infos_, type);
    put(infos_, std::uint64_t{data_.size()});
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
  }
  std::string finish(std::uint32_t version = 3) const {
    std::string out = "GGUF";
    put(out, version);
    put(out, tensors_);
    put(out, count_);
    out += keys_ + infos_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  void begin(std::string_view key, std::uint32_t kind) {
    put_text(keys_, key);
    put(keys_, kind);
    ++count_;
  }
  std::string keys_, infos_, data_;
  std::uint64_t count_ = 0, tensors_ = 0;
};

struct Made {
  std::string bytes;
  std::vector<float> values;  // [rows, columns], as GGUF has them
};

Made made_tensor(std::uint32_t type, std::int64_t rows, std::int64_t columns, Random& random) {
  Made made;
  const auto add_half = [&](float value) { GgufWriter::put(made.bytes, tensor::to_f16(value).bits); };
  for (std::int64_t i = 0; i < rows * columns; i += type == 2 || type == 8 ? 32 : 1) {
    if (type == 0 || type == 1 || type == 30) {
      float value = static_cast<float>(random.below(256)) / 64 - 2;
      if (type == 0) GgufWriter::put(made.bytes, value);
      if (type == 1) add_half(value);
      if (type == 30) GgufWriter::put(made.bytes, tensor::to_bf16(value).bits);
      made.values.push_back(value);
      continue;
    }
    const float scale = static_cast<float>(1 + random.below(15)) / 16 * (random.below(2) == 0 ? 1 : -1);
    add_half(scale);
    std::vector<int> codes(32);
    for (int& code : codes) code = static_cast<int>(random.below(type == 2 ? 16 : 256));
    if (type == 2) {
      for (std::size_t j = 0; j < 16; ++j) {
        made.bytes += static_cast<char>(static_cast<unsigned>(codes[j]) | static_cast<unsigned>(codes[j + 16]) << 4);
      }
      for (const int code : codes) made.values.push_back(static_cast<float>(code - 8) * scale);
    } else {
      for (const int code : codes) {
        made.bytes += static_cast<char>(code - 128);
        made.values.push_back(static_cast<float>(code - 128) * scale);
      }
    }
  }
  return made;
}

struct Sample {
  std::string bytes;
  std::map<std::string, Made> tensors;
};

Sample sample(std::uint32_t type, std::uint32_t down_type, const std::string& family = "llama",
              const std::vector<std::string>& merges = {"H i", "Ġ t", "Ġt h"}) {
  Random random(5);
  Sample made;
  GgufWriter writer;
  writer.text("general.architecture", family);
  for (const auto& [key, value] :
       {std::pair{"block_count", kLayers}, std::pair{"embedding_length", kGgufWidth},
        std::pair{"feed_forward_length", kMlp}, std::pair{"attention.head_count", kHeads},
        std::pair{"attention.head_count_kv", kKvHeads}, std::pair{"context_length", std::int64_t{512}},
        std::pair{"rope.dimension_count", kHeadWidth}}) {
    writer.number(family + "." + key, static_cast<std::uint32_t>(value));
  }
  writer.real(family + ".attention.layer_norm_rms_epsilon", 1e-5F);
  writer.real(family + ".rope.freq_base", 500000);
  std::vector<std::string> words = {"<s>", "</s>", "H", "i", "Hi", "Ġ", "t", "h", "Ġt", "Ġth"};
  std::vector<std::int32_t> kinds = {3, 3};
  while (std::ssize(words) < kWords) words.push_back("w" + std::to_string(words.size()));
  kinds.resize(words.size(), 1);
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "llama-bpe");
  writer.texts("tokenizer.ggml.tokens", words);
  writer.numbers("tokenizer.ggml.token_type", kinds);
  writer.texts("tokenizer.ggml.merges", merges);
  writer.number("tokenizer.ggml.bos_token_id", 0);
  writer.number("tokenizer.ggml.eos_token_id", 1);
  writer.flag("tokenizer.ggml.add_bos_token", true);
  writer.text("tokenizer.chat_template", "{{ messages[0]['content'] }}");
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, std::uint32_t of) {
    Made one = made_tensor(of, shape.size() == 1 ? 1 : shape[0], shape.back(), random);
    writer.tensor(name, shape, of, one.bytes);
    made.tensors.emplace(name, std::move(one));
  };
  add("token_embd.weight", {kWords, kGgufWidth}, type);
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    add(at + "attn_norm.weight", {kGgufWidth}, 0);
    add(at + "attn_q.weight", {kHeads * kHeadWidth, kGgufWidth}, type);
    add(at + "attn_k.weight", {kKvHeads * kHeadWidth, kGgufWidth}, type);
    add(at + "attn_v.weight", {kKvHeads * kHeadWidth, kGgufWidth}, type);
    add(at + "attn_output.weight", {kGgufWidth, kHeads * kHeadWidth}, type);
    add(at + "ffn_norm.weight", {kGgufWidth}, 0);
    add(at + "ffn_gate.weight", {kMlp, kGgufWidth}, type);
    add(at + "ffn_up.weight", {kMlp, kGgufWidth}, type);
    add(at + "ffn_down.weight", {kGgufWidth, kMlp}, down_type);
  }
  add("output_norm.weight", {kGgufWidth}, 0);
  made.bytes = writer.finish();
  return made;
}

class ImportGguf : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes) {
    const std::filesystem::path file = scratch.path() / ("model" + std::to_string(++files_) + ".gguf");
    write_file_atomically(file, bytes);
    return file;
  }
  std::filesystem::path import(const std::string& bytes) {
    const std::filesystem::path file = write(bytes);
    const std::filesystem::path folder = scratch.path() / ("folder" + std::to_string(files_));
    import_gguf(file, folder, {});
    return folder;
  }
  ScratchDir scratch;

 private:
  int files_ = 0;
};

// The rows of q and k as transformers has them: halves, where llama.cpp has neighbours.
std::vector<float> unturned(const std::vector<float>& values, std::int64_t heads) {
  std::vector<float> rows;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t half = 0; half < 2; ++half) {
      for (std::int64_t i = 0; i < kHeadWidth / 2; ++i) {
        const auto row = values.begin() + (head * kHeadWidth + 2 * i + half) * kGgufWidth;
        rows.insert(rows.end(), row, row + kGgufWidth);
      }
    }
  }
  return rows;
}

TEST_F(ImportGguf, EveryTypeKeepsItsNumbersToTheBit) {
  for (const auto& [type, down] : {std::pair{2U, 2U}, std::pair{8U, 8U}, std::pair{2U, 8U}, std::pair{30U, 30U},
                                   std::pair{1U, 2U}, std::pair{0U, 1U}}) {
    const Sample made = sample(type, down);
    const ModelFiles files(import(made.bytes));
    const auto values = [&](const std::string& module) { return matrix_values(files.load_matrix(module)); };
    EXPECT_EQ(values("model.embed_tokens"), made.tensors.at("token_embd.weight").values) << type;
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      const std::string to = "model.layers." + std::to_string(layer) + ".";
      const std::string from = "blk." + std::to_string(layer) + ".";
      EXPECT_EQ(values(to + "self_attn.q_proj"), unturned(made.tensors.at(from + "attn_q.weight").values, kHeads));
      EXPECT_EQ(values(to + "self_attn.k_proj"), unturned(made.tensors.at(from + "attn_k.weight").values, kKvHeads));
      EXPECT_EQ(values(to + "self_attn.v_proj"), made.tensors.at(from + "attn_v.weight").values);
      EXPECT_EQ(values(to + "mlp.down_proj"), made.tensors.at(from + "ffn_down.weight").values) << type << " " << down;
      EXPECT_EQ(values(to + "mlp.gate_proj"), made.tensors.at(from + "ffn_gate.weight").values);
      const tensor::Tensor norm = files.load_tensor(to + "input_layernorm.weight");
      EXPECT_TRUE(std::equal(norm.span<float>().begin(), norm.span<float>().end(),
                             made.tensors.at(from + "attn_norm.weight").values.begin()));
    }
    EXPECT_EQ(from_json<bool>(*files.config().find("tie_word_embeddings")), true);
    EXPECT_EQ(from_json<double>(*files.config().find("rms_norm_eps")), 1e-5);
  }
}

TEST_F(ImportGguf, RowsOfOtherFamiliesStayInOrder) {
  const Sample made = sample(8, 8, "qwen3");
  const ModelFiles files(import(made.bytes));
  EXPECT_EQ(matrix_values(files.load_matrix("model.layers.1.self_attn.q_proj")),
            made.tensors.at("blk.1.attn_q.weight").values);
}

TEST_F(ImportGguf, TokenizerAndChatTemplateComeAlong) {
  const std::filesystem::path folder = import(sample(2, 2).bytes);
  const Document tokenizer = parse_json(read_file(folder / "tokenizer.json"), "tokenizer.json");
  const Document& model = *tokenizer.find("model");
  EXPECT_EQ(model.find("vocab")->find("Ġth")->text, "9");
  EXPECT_EQ(model.find("merges")->items.at(2).items.at(0).text, "Ġt");
  EXPECT_EQ(model.find("merges")->items.at(2).items.at(1).text, "h");
  EXPECT_EQ(tokenizer.find("added_tokens")->items.size(), 2U);
  EXPECT_EQ(tokenizer.find("post_processor")->find("type")->text, "TemplateProcessing");
  const Document beside = parse_json(read_file(folder / "tokenizer_config.json"), "tokenizer_config.json");
  EXPECT_EQ(beside.find("eos_token")->text, "</s>");
  EXPECT_EQ(beside.find("chat_template")->text, "{{ messages[0]['content'] }}");
}

TEST_F(ImportGguf, WhatIsNotSupportedIsNamedAndLeavesNothing) {
  Sample made = sample(2, 2);
  const auto refused = [&](const std::string& bytes, ErrorCode code, const char* what) {
    const std::filesystem::path file = write(bytes);
    const std::filesystem::path folder = scratch.path() / "refused";
    EXPECT_ERROR(import_gguf(file, folder, {}), code, what);
    EXPECT_FALSE(std::filesystem::exists(folder));
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string bytes = made.bytes;
    bytes.replace(bytes.find(from), from.size(), to);
    return bytes;
  };
  refused("not a model", ErrorCode::kInvalid, "no GGUF file");
  refused(changed("llama-bpe", "llama-abc"), ErrorCode::kUnsupported, "llama-abc");
  refused(changed("blk.1.attn_v.weight", "blk.1.attn_x.weight"), ErrorCode::kUnsupported, "blk.1.attn_x.weight");
  const std::string name = "blk.0.ffn_up.weight";
  std::string other_type = made.bytes;
  other_type[other_type.find(name) + name.size() + 4 + 16] = 14;  // Q6_K, behind the axes
  refused(other_type, ErrorCode::kUnsupported, "Q6_K");
  std::string falcon = changed("general.architecture", "general.architectura");
  refused(falcon, ErrorCode::kInvalid, "general.architecture");
  refused(made.bytes.substr(0, made.bytes.size() - 300), ErrorCode::kInvalid, "ends before its tensor");
  std::string layers = made.bytes;
  const std::uint32_t many = 2'000'000'000;
  std::memcpy(layers.data() + layers.find("llama.block_count") + 17 + 4, &many, sizeof many);
  refused(layers, ErrorCode::kInvalid, ".gguf: num_hidden_layers: this must be a number from 1 to");
  std::string version = made.bytes;
  version[4] = 1;
  refused(version, ErrorCode::kUnsupported, "version 1");
}

// Four million merges took 3.6 GB, thirty lists of 16 million bytes took 4.2 GB.
TEST_F(ImportGguf, ATokenizerHasABound) {
  const auto refused = [&](const std::vector<std::string>& merges, const char* what) {
    const std::filesystem::path folder = scratch.path() / "refused";
    EXPECT_ERROR(import_gguf(write(sample(2, 2, "llama", merges).bytes), folder, {}), ErrorCode::kInvalid, what);
    EXPECT_FALSE(std::filesystem::exists(folder));
  };
  refused(std::vector<std::string>(700'001, "H i"), "it has 700001 merges of 2100003 bytes; yoke imports up to 700000");
  refused({std::string(17'000'000, 'H') + " i"}, "it has 1 merges of 17000002 bytes");
}

TEST(ParseGguf, AllListsTogetherHaveABound) {
  GgufWriter writer;
  for (const char* key : {"a", "b", "c"}) writer.bytes(key, 6'000'000);
  const std::string bytes = writer.finish();
  EXPECT_ERROR(parse_gguf(std::as_bytes(std::span(bytes)), "large"), ErrorCode::kInvalid,
               "claims a list of 6000000 values");
}

TEST(ParseGguf, ATruncatedFileIsRefusedWhereverItEnds) {
  const std::string bytes = sample(8, 2).bytes;
  Random random(9);
  for (int i = 0; i < 400; ++i) {
    const std::string part = bytes.substr(0, random.below(bytes.size()));
    EXPECT_ERROR(parse_gguf(std::as_bytes(std::span(part)), "part"), ErrorCode::kInvalid, "part") << part.size();
  }
}

TEST(ParseGguf, ALengthBeyondTheFileIsRefused) {
  std::string bytes = sample(2, 2).bytes;
  const std::size_t at = bytes.find("general.architecture") - 8;
  const std::uint64_t huge = ~std::uint64_t{0} - 3;
  std::memcpy(bytes.data() + at, &huge, sizeof huge);
  EXPECT_ERROR(parse_gguf(std::as_bytes(std::span(bytes)), "lying"), ErrorCode::kInvalid, "beyond its end");
}

}  // namespace
}  // namespace yoke::weights
