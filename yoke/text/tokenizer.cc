#include "yoke/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/text/detokenizer.h"
#include "yoke/text/tokenizer_parts.h"
#include "yoke/text/unicode.h"

namespace yoke::text {
namespace {

constexpr Bytes kMaxFile{128 << 20};  // the largest known (Gemma 3) has 33 MB

// Calls for what lies between added tokens and for the tokens themselves, in order.
template <class OnText, class OnToken>
void walk(std::string_view text, const std::vector<AddedTokens::Found>& tokens, OnText on_text, OnToken on_token) {
  std::size_t done = 0;
  for (const AddedTokens::Found& found : tokens) {
    if (found.range.begin > done) on_text(done, text.substr(done, found.range.begin - done));
    on_token(found.id);
    done = found.range.end;
  }
  if (done < text.size()) on_text(done, text.substr(done));
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  return Tokenizer(Parts::read(read_file(file, kMaxFile), file));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& source) {
  return Tokenizer(Parts::read(std::string(json), source));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (find_invalid_utf8(text)) return encode(replace_invalid_utf8(text), options);
  return encode(text, OriginRanges(options.origin), options.frame);
}

std::vector<TokenId> Tokenizer::encode(const std::vector<Segment>& segments, Frame frame) const {
  // Each is repaired for itself: a character must not be made of a user's bytes and a template's.
  std::vector<Segment> valid = segments;
  for (Segment& segment : valid) segment.text = replace_invalid_utf8(segment.text);
  return encode(joined_text(valid), OriginRanges(valid), frame);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const OriginRanges& origins, Frame frame) const {
  std::vector<TokenId> ids;
  Bpe::Workspace workspace;
  TextBudget budget(text.size());
  const auto add_token = [&](TokenId id) { ids.push_back(id); };
  const auto add_plain = [&](TextPiece plain) {
    for (const TextPiece& piece : parts_->pre_tokenizer.apply(std::move(plain), budget)) {
      parts_->bpe->encode(piece.text, workspace, ids);
      budget.cpu().look();
    }
  };
  if (frame == Frame::kAdd) ids = parts_->post_processor.before;
  const auto add_written = [&](std::size_t at, std::string_view written) {
    const std::string normalized = parts_->normalizer.apply(std::string(written), budget);
    const auto found = parts_->normalized_tokens.find_all(normalized, OriginRanges(Origin::kUser), budget);
    walk(
        normalized, found,
        [&](std::size_t begin, std::string_view plain) {
          add_plain({std::string(plain), at == 0 && begin == 0});
        },
        add_token);
  };
  walk(text, parts_->raw_tokens.find_all(text, origins, budget), add_written, add_token);
  if (frame == Frame::kAdd)
    ids.insert(ids.end(), parts_->post_processor.after.begin(), parts_->post_processor.after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  Detokenizer detokenizer(*this, options);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.add(id);
  return text + detokenizer.finish();
}

TokenId Tokenizer::size() const { return std::max(parts_->vocabulary.size(), parts_->added.size()); }
bool Tokenizer::contains(TokenId id) const { return parts_->contains(id); }

bool Tokenizer::is_special(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < parts_->special.size() &&
         parts_->special[static_cast<std::size_t>(id)];
}

std::optional<TokenId> Tokenizer::find(std::string_view token) const {
  if (const auto added = parts_->added.find(token)) return added;
  return parts_->vocabulary.find(token);
}

std::string_view Tokenizer::token(TokenId id) const {
  if (!contains(id)) {
    throw Error(ErrorCode::kInvalid, fmt::format("there is no token {}: the vocabulary has {} ids", id, size()));
  }
  return parts_->text(id);
}

void Tokenizer::append_bytes(std::string& bytes, TokenId id, TokenPlace place) const {
  const std::string_view text = token(id);
  // A token that was only added is its text, also where that happens to be made of the byte-level alphabet.
  if (parts_->added.contains(id) && !parts_->vocabulary.contains(id)) {
    bytes += text;
  } else {
    parts_->decoder.append(bytes, text, place);
  }
}

}  // namespace yoke::text
