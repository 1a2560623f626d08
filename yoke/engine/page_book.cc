#include "yoke/engine/page_book.h"

#include <algorithm>

#include "yoke/base/check.h"

namespace yoke::engine {

PageBook::PageBook(std::int64_t pages) : pages_(static_cast<std::size_t>(pages)) {
  for (std::int64_t page = pages; page-- > 0;) free_.push_back(static_cast<std::int32_t>(page));
}

std::size_t PageBook::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = key.after * 0x9e3779b97f4a7c15ULL;
  for (const text::TokenId id : key.tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(id)) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

PageBook::Page& PageBook::page_at(std::int32_t page) {
  YOKE_CHECK(page >= 0 && page < std::ssize(pages_), "page {} of {}", page, pages_.size());
  return pages_[static_cast<std::size_t>(page)];
}

std::int64_t PageBook::used_pages() const {
  return std::count_if(pages_.begin(), pages_.end(), [](const Page& page) { return page.users > 0; });
}

PageBook::Key PageBook::key_of(Link after, std::span<const text::TokenId> tokens) {
  YOKE_CHECK_EQ(std::ssize(tokens), kPageTokens);
  Key key{.after = after};
  std::copy(tokens.begin(), tokens.end(), key.tokens.begin());
  return key;
}

void PageBook::forget(std::int32_t page) {
  Page& one = page_at(page);
  if (!one.key) return;
  known_.erase(*one.key);
  one.key.reset();
}

std::optional<std::int32_t> PageBook::take() {
  if (free_.empty()) {
    if (kept_.empty()) return std::nullopt;
    const std::int32_t oldest = kept_.front();
    kept_.pop_front();
    forget(oldest);
    free_.push_back(oldest);
  }
  const std::int32_t page = free_.back();
  free_.pop_back();
  page_at(page).users = 1;
  return page;
}

void PageBook::hold(std::int32_t page) {
  Page& one = page_at(page);
  YOKE_CHECK(one.users > 0 || one.key.has_value(), "page {} holds nothing to share", page);
  if (one.users++ == 0) kept_.erase(one.kept);
}

void PageBook::drop(std::int32_t page) {
  Page& one = page_at(page);
  YOKE_CHECK(one.users > 0, "page {} has no user", page);
  if (--one.users > 0) return;
  if (one.key) {
    one.kept = kept_.insert(kept_.end(), page);
  } else {
    free_.push_back(page);
  }
}

std::optional<PageBook::Found> PageBook::find(Link after, std::span<const text::TokenId> tokens) const {
  const auto found = known_.find(key_of(after, tokens));
  if (found == known_.end()) return std::nullopt;
  return Found{found->second, pages_[static_cast<std::size_t>(found->second)].link};
}

PageBook::Link PageBook::publish(std::int32_t page, Link after, std::span<const text::TokenId> tokens) {
  Page& one = page_at(page);
  YOKE_CHECK(one.users > 0, "page {} has no user", page);
  if (one.key) return one.link;
  const Key key = key_of(after, tokens);
  const auto [place, is_new] = known_.emplace(key, page);
  if (!is_new) return page_at(place->second).link;
  one.key = key;
  one.link = std::exchange(next_link_, next_link_ + 2);
  return one.link;
}

}  // namespace yoke::engine
