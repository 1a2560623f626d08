// Rank 0's book of the cache's pages: who uses each, and what the pages hold that nobody uses any more. A page that was
// filled to its end is remembered by its tokens and by the page before it: a request that begins with the same tokens
// shares it and does not compute them again. Pages are free, in use, or kept for their contents; the least recently
// used of the latter goes first when a page is needed. Pure.
//
// A prefix is found by its tokens themselves, not by a hash of them: no two prefixes are ever taken for each other.
#pragma once
#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "yoke/spec/memory_fit.h"
#include "yoke/text/vocabulary.h"

namespace yoke::engine {

inline constexpr std::int64_t kPageTokens = spec::kCachePageTokens;

class PageBook {
 public:
  explicit PageBook(std::int64_t pages);

  // What a page follows: an identity that no other contents ever get, and of the first page the salt of the one that
  // may share it.
  using Link = std::uint64_t;

  std::int64_t available() const { return free_pages() + cached_pages(); }
  std::int64_t free_pages() const { return std::ssize(free_); }
  std::int64_t cached_pages() const { return std::ssize(kept_); }
  std::int64_t used_pages() const;  // counted, page by page

  // A page for one user; nothing where all are in use.
  std::optional<std::int32_t> take();
  void hold(std::int32_t page);  // one user more, also of a page that was only kept
  void drop(std::int32_t page);  // one user less

  struct Found {
    std::int32_t page;
    Link link;  // what the next page follows
  };
  std::optional<Found> find(Link after, std::span<const text::TokenId> tokens) const;
  // These tokens are in the page, and the step that put them there has ended well. Where another page holds the same,
  // that one stays the known one. The link for the page that follows.
  Link publish(std::int32_t page, Link after, std::span<const text::TokenId> tokens);
  static Link first_link(std::uint64_t salt) { return salt << 1 | 1; }  // links of pages are even

 private:
  struct Key {
    Link after = 0;
    std::array<text::TokenId, kPageTokens> tokens{};
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Page {
    std::int32_t users = 0;
    std::optional<Key> key;  // of what it holds, where that is known to others
    Link link = 0;
    std::list<std::int32_t>::iterator kept;  // where nobody uses it but its contents are known
  };
  Page& page_at(std::int32_t page);
  static Key key_of(Link after, std::span<const text::TokenId> tokens);
  void forget(std::int32_t page);

  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;
  std::list<std::int32_t> kept_;  // least recently used first
  std::unordered_map<Key, std::int32_t, KeyHash> known_;
  Link next_link_ = 2;
};

// Pages that so many tokens take.
constexpr std::int64_t pages_for(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

}  // namespace yoke::engine
