#include "yoke/engine/page_book.h"

#include <gtest/gtest.h>

namespace yoke::engine {
namespace {

std::vector<text::TokenId> page_of(text::TokenId token) { return std::vector<text::TokenId>(kPageTokens, token); }

TEST(PageBook, APageIsFreeInUseOrKept) {
  PageBook book(2);
  const auto page = book.take();
  ASSERT_TRUE(page);
  EXPECT_EQ(book.used_pages(), 1);
  book.drop(*page);
  EXPECT_EQ(book.free_pages(), 2) << "nobody knows what it holds";
  const auto known = book.take();
  book.publish(*known, PageBook::first_link(0), page_of(1));
  book.drop(*known);
  EXPECT_EQ(book.cached_pages(), 1);
  EXPECT_EQ(book.available(), 2);
}

TEST(PageBook, APrefixIsFoundByItsTokensAndByWhatIsBeforeThem) {
  PageBook book(4);
  const auto first = book.take();
  const auto second = book.take();
  const PageBook::Link link = book.publish(*first, PageBook::first_link(0), page_of(1));
  book.publish(*second, link, page_of(2));
  const auto found = book.find(PageBook::first_link(0), page_of(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->page, *first);
  EXPECT_EQ(book.find(found->link, page_of(2))->page, *second);
  EXPECT_FALSE(book.find(PageBook::first_link(0), page_of(2))) << "it follows another page";
  EXPECT_FALSE(book.find(PageBook::first_link(7), page_of(1))) << "of another salt";
}

TEST(PageBook, TheSameContentsAreKnownOnce) {
  PageBook book(4);
  const auto one = book.take();
  const auto two = book.take();
  const PageBook::Link link = book.publish(*one, PageBook::first_link(0), page_of(1));
  EXPECT_EQ(book.publish(*two, PageBook::first_link(0), page_of(1)), link);
  book.drop(*two);
  EXPECT_EQ(book.free_pages(), 3);
}

TEST(PageBook, TheLeastRecentlyUsedGoesFirst) {
  PageBook book(2);
  const auto old = book.take();
  const auto young = book.take();
  book.publish(*old, PageBook::first_link(0), page_of(1));
  book.publish(*young, PageBook::first_link(0), page_of(2));
  book.drop(*old);
  book.drop(*young);
  book.hold(*old);  // used again
  book.drop(*old);
  const auto taken = book.take();
  EXPECT_EQ(*taken, *young);
  EXPECT_FALSE(book.find(PageBook::first_link(0), page_of(2)));
  EXPECT_TRUE(book.find(PageBook::first_link(0), page_of(1)));
  EXPECT_TRUE(book.take());
  EXPECT_FALSE(book.take()) << "all are in use";
}

}  // namespace
}  // namespace yoke::engine
