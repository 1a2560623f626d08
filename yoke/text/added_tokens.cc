#include "yoke/text/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/limits.h"
#include "yoke/text/components.h"
#include "yoke/text/unicode.h"

namespace yoke::text {
namespace {

bool ends_in_word(std::string_view text) {
  std::size_t start = text.size();
  while (start > 0 && (static_cast<unsigned char>(text[--start]) & 0xC0U) == 0x80U) {
  }
  return !text.empty() && is_word(code_point(text.substr(start)));
}

bool starts_in_word(std::string_view text) { return !text.empty() && is_word(code_point(text)); }

}  // namespace

AddedToken read_added_token(const Document& document) {
  const std::int64_t id = number_setting(document, "id");
  AddedToken token{.content = text_setting(document, "content"),
                   .single_word = flag_setting(document, "single_word", false),
                   .strip_left = flag_setting(document, "lstrip", false),
                   .strip_right = flag_setting(document, "rstrip", false),
                   .normalized = flag_setting(document, "normalized", false),
                   .special = flag_setting(document, "special", false)};
  if (id < 0 || id > Vocabulary::kMaxId || token.content.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: an added token needs a text and an id from 0 to {}",
                                                 document.where, Vocabulary::kMaxId));
  }
  if (token.content.size() > limits::kAddedTokenBytes) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: an added token has {} bytes, more than {}", document.where,
                                                 token.content.size(), limits::kAddedTokenBytes));
  }
  token.id = static_cast<TokenId>(id);
  return token;
}

std::int32_t AddedTokens::child(std::int32_t node, char byte) const {
  std::int32_t found = nodes_[static_cast<std::size_t>(node)].child;
  while (found != kNone && nodes_[static_cast<std::size_t>(found)].byte != byte) {
    found = nodes_[static_cast<std::size_t>(found)].sibling;
  }
  return found;
}

void AddedTokens::add(AddedToken token) {
  std::int32_t node = 0;
  for (const char byte : token.content) {
    std::int32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({.sibling = nodes_[static_cast<std::size_t>(node)].child, .byte = byte});
      nodes_[static_cast<std::size_t>(node)].child = next;
    }
    node = next;
  }
  nodes_[static_cast<std::size_t>(node)].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::longest(std::string_view text, std::size_t at, const OriginRanges& origins) const {
  const AddedToken* found = nullptr;
  std::int32_t node = 0;
  for (std::size_t end = at; end < text.size();) {
    node = child(node, text[end++]);
    if (node == kNone) break;
    const std::int32_t index = nodes_[static_cast<std::size_t>(node)].token;
    if (index == kNone) continue;
    const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
    const bool inside_word =
        token.single_word && (ends_in_word(text.substr(0, at)) || starts_in_word(text.substr(end)));
    const bool may_steer = !token.special || origins.all_from_template(at, end);
    if (may_steer && !inside_word) found = &token;
  }
  return found;
}

std::vector<AddedTokens::Found> AddedTokens::find_all(std::string_view text, const OriginRanges& origins,
                                                      TextBudget& budget) const {
  std::vector<Found> all;
  std::size_t free_from = 0;  // what lies before belongs to the last token found
  for (std::size_t at = 0; at < text.size();) {
    budget.cpu().look();
    const AddedToken* token = longest(text, at, origins);
    if (!token) {
      ++at;
      continue;
    }
    const std::size_t end = at + token->content.size();
    Match range{std::max(at, free_from), std::max(end, free_from)};
    if (token->strip_left && at > free_from) {
      range.begin = free_from + trim_end(text.substr(free_from, at - free_from)).size();
    }
    if (token->strip_right) range.end = text.size() - trim_start(text.substr(range.end)).size();
    all.push_back({range, token->id});
    at = end;  // white space that was swallowed may still begin the next token
    free_from = range.end;
  }
  return all;
}

}  // namespace yoke::text
