#include "yoke/text/bpe.h"

#include <gtest/gtest.h>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/rng_testing.h"
#include "yoke/text/unicode.h"

namespace yoke::text {
namespace {

// A vocabulary of letters, and merges of what is there, chosen at random: the rank order is the order of making.
struct Model {
  Vocabulary vocabulary;
  MergeTable merges;

  Model(std::uint64_t seed, int merge_count) {
    Random random(seed);
    TokenId next = 0;
    for (const char letter : std::string_view("abcd")) vocabulary.add(std::string(1, letter), next++);
    for (int i = 0; i < merge_count; ++i) {
      const auto left = static_cast<TokenId>(random.below(static_cast<std::uint64_t>(next)));
      const auto right = static_cast<TokenId>(random.below(static_cast<std::uint64_t>(next)));
      const std::string merged = std::string(vocabulary.text(left)) + std::string(vocabulary.text(right));
      if (merged.size() > 6 || vocabulary.find(merged)) continue;
      vocabulary.add(merged, next);
      merges.add(left, right, next++);
    }
  }

  // The definition, in obvious loops: the pair of lowest rank, leftmost first, until there is none.
  std::vector<TokenId> encode_slowly(std::string_view text) const {
    std::vector<TokenId> ids;
    for (const char letter : text) ids.push_back(*vocabulary.find(std::string(1, letter)));
    for (;;) {
      const MergeTable::Merge* best = nullptr;
      std::size_t best_at = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto* merge = merges.find(ids[i], ids[i + 1]);
        if (merge && (!best || merge->rank < best->rank)) {
          best = merge;
          best_at = i;
        }
      }
      if (!best) return ids;
      ids[best_at] = best->merged;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
    }
  }
};

std::vector<TokenId> encode(const Bpe& bpe, std::string_view text) {
  Bpe::Workspace workspace;
  std::vector<TokenId> ids;
  bpe.encode(text, workspace, ids);
  return ids;
}

TEST(Bpe, MergesAsTheSlowDefinitionDoes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Model model(seed, 60);
    const Bpe bpe(model.vocabulary, model.merges, {});
    Random random(seed, 1);
    for (const std::size_t size : {0U, 1U, 2U, 3U, 7U, 31U, 100U}) {
      std::string text;
      while (text.size() < size) text += "abcd"[random.below(4)];
      ASSERT_EQ(encode(bpe, text), model.encode_slowly(text)) << "seed " << seed << ", " << text;
    }
  }
}

TEST(Bpe, AWholeTokenWinsWhereMergesAreIgnored) {
  Vocabulary vocabulary;
  for (TokenId id = 0; const char* token : {"a", "b", "ab", "aba"}) vocabulary.add(token, id++);
  MergeTable merges;
  merges.add(0, 1, 2);
  EXPECT_EQ(encode(Bpe(vocabulary, merges, {}), "aba"), (std::vector<TokenId>{2, 0}));
  EXPECT_EQ(encode(Bpe(vocabulary, merges, {.ignore_merges = true}), "aba"), (std::vector<TokenId>{3}));
  const BpeOptions steering{.ignore_merges = true, .special = {false, false, false, true}};
  EXPECT_EQ(encode(Bpe(vocabulary, merges, steering), "aba"), (std::vector<TokenId>{2, 0}))
      << "what is special is no piece of text";
}

TEST(Bpe, UnknownCharactersBecomeBytesOrUnknownTokensOrAnError) {
  Vocabulary vocabulary;
  for (TokenId id = 0; const char* token : {"a", "<unk>", "<0xC3>", "<0xA9>"}) vocabulary.add(token, id++);
  EXPECT_EQ(encode(Bpe(vocabulary, {}, {.byte_fallback = true, .unknown = 1}), "aé"), (std::vector<TokenId>{0, 2, 3}));
  EXPECT_EQ(encode(Bpe(vocabulary, {}, {.byte_fallback = true, .unknown = 1}), "aßa"), (std::vector<TokenId>{0, 1, 0}))
      << "not all of its bytes have a token";
  EXPECT_EQ(encode(Bpe(vocabulary, {}, {.unknown = 1}), "éé"), (std::vector<TokenId>{1, 1}));
  EXPECT_EQ(encode(Bpe(vocabulary, {}, {.fuse_unknown = true, .unknown = 1}), "ééa"), (std::vector<TokenId>{1, 0}));
  EXPECT_ERROR(encode(Bpe(vocabulary, {}, {}), "é"), ErrorCode::kInvalid, "no token for 'é'");
}

TEST(Bpe, TheEndOfAWordCanBeMarked) {
  Vocabulary vocabulary;
  for (TokenId id = 0; const char* token : {"a", "b", "b</w>", "ab</w>"}) vocabulary.add(token, id++);
  MergeTable merges;
  merges.add(0, 2, 3);
  const Bpe bpe(vocabulary, merges, {.end_of_word = "</w>"});
  EXPECT_EQ(encode(bpe, "ab"), (std::vector<TokenId>{3}));
  EXPECT_EQ(encode(bpe, "abb"), (std::vector<TokenId>{0, 1, 2}));
}

// A quadratic merge of a million letters would take hours.
TEST(Bpe, ALongPieceIsNotQuadratic) {
  const Model model(3, 60);
  const Bpe bpe(model.vocabulary, model.merges, {});
  Random random(1);
  std::string text;
  while (text.size() < 1'000'000) text += "abcd"[random.below(4)];
  const Deadline deadline = Deadline::after(Seconds{60});
  std::string back;
  for (const TokenId id : encode(bpe, text)) back += model.vocabulary.text(id);
  EXPECT_EQ(back, text);
  EXPECT_FALSE(deadline.expired());
}

TEST(Vocabulary, FindsByTextAndById) {
  Vocabulary vocabulary;
  EXPECT_FALSE(vocabulary.find("a"));
  for (TokenId id = 0; id < 1000; ++id) EXPECT_TRUE(vocabulary.add("token" + std::to_string(id), 2 * id));
  for (TokenId id = 0; id < 1000; ++id) {
    EXPECT_EQ(vocabulary.find("token" + std::to_string(id)), 2 * id);
    EXPECT_EQ(vocabulary.text(2 * id), "token" + std::to_string(id));
    EXPECT_FALSE(vocabulary.contains(2 * id + 1));
  }
  EXPECT_EQ(vocabulary.size(), 1999);
  EXPECT_TRUE(vocabulary.add("token1", 2)) << "the same again";
  EXPECT_FALSE(vocabulary.add("token1", 4));
  EXPECT_FALSE(vocabulary.add("other", 2));
  EXPECT_TRUE(vocabulary.add("", 5)) << "an empty token is a token";
  EXPECT_EQ(vocabulary.find(""), 5);
}

}  // namespace
}  // namespace yoke::text
