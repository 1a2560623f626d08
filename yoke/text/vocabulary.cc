#include "yoke/text/vocabulary.h"

#include <bit>

#include "yoke/base/check.h"
#include "yoke/base/hash.h"

namespace yoke::text {

void Vocabulary::reserve(std::size_t tokens) { grow(std::bit_ceil(2 * tokens + 16)); }

void Vocabulary::grow(std::size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, kFree);
  for (TokenId id = 0; id < size(); ++id) {
    if (contains(id)) slots_[slot_of(text(id))] = id;
  }
}

std::size_t Vocabulary::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = SecretHash{}(text)&mask;
  while (slots_[slot] != kFree && this->text(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

bool Vocabulary::add(std::string_view text, TokenId id) {
  YOKE_CHECK(id >= 0 && id <= kMaxId, "token id {}", id);
  if (const auto known = find(text)) return *known == id;
  if (contains(id)) return false;
  if (2 * (count_ + 1) > slots_.size()) reserve(2 * count_);
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(texts_.size()),
                                            static_cast<std::uint32_t>(text.size())};
  texts_ += text;
  slots_[slot_of(text)] = id;
  ++count_;
  return true;
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const TokenId id = slots_[slot_of(text)];
  if (id == kFree) return std::nullopt;
  return id;
}

bool Vocabulary::contains(TokenId id) const {
  return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)].length != kHole;
}

std::string_view Vocabulary::text(TokenId id) const {
  YOKE_CHECK(contains(id), "token id {}", id);
  const Entry entry = entries_[static_cast<std::size_t>(id)];
  return std::string_view(texts_).substr(entry.begin, entry.length);
}

}  // namespace yoke::text
