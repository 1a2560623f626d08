#include "yoke/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"
#include "yoke/text/unicode.h"

namespace yoke::text {
namespace {

constexpr std::int32_t kNone = -1;
constexpr TokenId kMergedAway = -1;
constexpr std::size_t kMaxPiece = 1 << 30;  // positions are 32 bits

std::uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
}

// The finalizer of splitmix64: neighbouring ids spread over the table. It can be inverted, so that a file could choose
// pairs that collide if it knew the number that it starts from.
std::uint64_t mix(std::uint64_t x) {
  x += secret_number();
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The queue gives the lowest rank first, and among equals the leftmost pair.
bool comes_later(const Bpe::Workspace::Pair& a, const Bpe::Workspace::Pair& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

void MergeTable::reserve(std::size_t merges) {
  const std::size_t wanted = std::bit_ceil(2 * merges + 16);
  if (wanted <= slots_.size()) return;
  std::vector<Slot> before(wanted);
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (slot.pair != kFree) slots_[slot_of(slot.pair)] = slot;
  }
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = mix(pair) & mask;
  while (slots_[slot].pair != kFree && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::add(TokenId left, TokenId right, TokenId merged) {
  if (2 * (std::size_t{count_} + 1) > slots_.size()) reserve(2 * std::size_t{count_});
  const std::uint64_t pair = pair_key(left, right);
  slots_[slot_of(pair)] = {pair, {count_++, merged}};
}

const MergeTable::Merge* MergeTable::find(TokenId left, TokenId right) const {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[slot_of(pair_key(left, right))];
  return slot.pair == kFree ? nullptr : &slot.merge;
}

Bpe::Bpe(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options)
    : vocabulary_(&vocabulary), merges_(std::move(merges)), options_(std::move(options)) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  }
}

void Bpe::start_unknown(std::string_view character, Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  const auto byte_token = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
  if (options_.byte_fallback && std::all_of(character.begin(), character.end(), byte_token)) {
    for (const char byte : character) symbols.push_back({*byte_token(byte), kNone, kNone});
    return;
  }
  if (!options_.unknown) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("the vocabulary has no token for '{}', and none for unknown characters", printable(character)),
        "this text cannot be given to this model");
  }
  if (options_.fuse_unknown && !symbols.empty() && symbols.back().id == *options_.unknown) return;
  symbols.push_back({*options_.unknown, kNone, kNone});
}

void Bpe::start(std::string_view piece, Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  symbols.clear();
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, utf8_length(piece));
    piece.remove_prefix(character.size());
    const bool is_last = piece.empty() && !options_.end_of_word.empty();
    const auto id =
        is_last ? vocabulary_->find(std::string(character) + options_.end_of_word) : vocabulary_->find(character);
    if (id) {
      symbols.push_back({*id, kNone, kNone});
    } else {
      start_unknown(character, workspace);
    }
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i) + 1 : kNone;
  }
}

void Bpe::queue_pair(std::int32_t left, Workspace& workspace) const {
  if (left == kNone) return;
  const Workspace::Symbol& symbol = workspace.symbols[static_cast<std::size_t>(left)];
  if (symbol.next == kNone) return;
  const auto* merge = merges_.find(symbol.id, workspace.symbols[static_cast<std::size_t>(symbol.next)].id);
  if (!merge) return;
  workspace.queue.push_back({merge->rank, left});
  std::push_heap(workspace.queue.begin(), workspace.queue.end(), comes_later);
}

void Bpe::merge_all(Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  workspace.queue.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) queue_pair(static_cast<std::int32_t>(i), workspace);
  while (!workspace.queue.empty()) {
    const Workspace::Pair pair = workspace.queue.front();
    std::pop_heap(workspace.queue.begin(), workspace.queue.end(), comes_later);
    workspace.queue.pop_back();
    // Queued pairs are not taken back when a neighbour changes: those that are no longer there are passed over.
    Workspace::Symbol& left = symbols[static_cast<std::size_t>(pair.left)];
    if (left.id == kMergedAway || left.next == kNone) continue;
    Workspace::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    const auto* merge = merges_.find(left.id, right.id);
    if (!merge || merge->rank != pair.rank) continue;
    left.id = merge->merged;
    right.id = kMergedAway;
    left.next = right.next;
    if (left.next != kNone) symbols[static_cast<std::size_t>(left.next)].previous = pair.left;
    queue_pair(left.previous, workspace);
    queue_pair(pair.left, workspace);
  }
}

void Bpe::encode(std::string_view piece, Workspace& workspace, std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  if (piece.size() > kMaxPiece) throw Error(ErrorCode::kExhausted, "a text of more than 1 GiB cannot be tokenized");
  if (options_.ignore_merges) {
    if (const auto whole = vocabulary_->find(piece); whole && !is_special(*whole)) {
      ids.push_back(*whole);
      return;
    }
  }
  start(piece, workspace);
  merge_all(workspace);
  for (const Workspace::Symbol& symbol : workspace.symbols) {
    if (symbol.id != kMergedAway) ids.push_back(symbol.id);
  }
}

}  // namespace yoke::text
