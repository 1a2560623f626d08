// Text to token ids and back, as the tokenizer.json of a model folder says: byte-level BPE (Llama 3, Qwen, GPT-2,
// gpt-oss) and byte-fallback BPE (Llama 2, Mistral). The ids are those of Hugging Face's tokenizers library.
//
//   const Tokenizer tokenizer = Tokenizer::load("model/tokenizer.json");
//   const std::vector<TokenId> ids = tokenizer.encode("Hello", {.frame = Frame::kAdd});
//   tokenizer.decode(ids) == "Hello"
//
// Immutable once read: any thread may encode and decode. Streams of tokens are decoded by a Detokenizer.
// Text that is not UTF-8 is encoded with each broken part replaced by U+FFFD. One deviation from the library: special
// tokens are looked for in the text as it was written, also those that say "normalized".
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/segment.h"
#include "yoke/text/vocabulary.h"

namespace yoke::text {

// What the model wants around a text, such as <|begin_of_text|>. A chat template writes it itself.
enum class Frame { kNone, kAdd };
enum class SpecialTokens { kHide, kShow };

enum class TokenPlace;  // see decoder.h

struct EncodeOptions {
  Frame frame = Frame::kNone;
  Origin origin = Origin::kUser;  // kTemplate: special tokens written in the text are recognized
};

struct DecodeOptions {
  SpecialTokens special_tokens = SpecialTokens::kHide;
};

class Tokenizer {
 public:
  static Tokenizer load(const std::filesystem::path& file);
  static Tokenizer parse(std::string_view json, const std::string& source);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;
  // As one text, in which special tokens are recognized where they come from the template.
  std::vector<TokenId> encode(const std::vector<Segment>& segments, Frame frame = Frame::kNone) const;
  // Broken characters become U+FFFD. An id outside the vocabulary is kInvalid.
  std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  TokenId size() const;  // one more than the largest id
  bool contains(TokenId id) const;
  bool is_special(TokenId id) const;
  std::optional<TokenId> find(std::string_view token) const;
  std::string_view token(TokenId id) const;  // as the file writes it: 'Ġworld'. kInvalid where there is none
  // The bytes that a token adds to a text, which may be part of a character.
  std::string bytes(TokenId id, TokenPlace place) const {
    std::string bytes;
    append_bytes(bytes, id, place);
    return bytes;
  }

 private:
  friend class Detokenizer;
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::vector<TokenId> encode(std::string_view text, const OriginRanges& origins, Frame frame) const;
  // The bytes of one token, which may be part of a character.
  void append_bytes(std::string& bytes, TokenId id, TokenPlace place) const;

  std::unique_ptr<const Parts> parts_;
};

}  // namespace yoke::text
