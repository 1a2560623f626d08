#include "yoke/check/word_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace yoke::check {
namespace {

TEST(WordScan, FindsWordsInsideOfEachOtherAndAcrossTheirEnds) {
  const WordScan scan({{"he", 0}, {"she", 1}, {"his", 2}, {"hers", 3}});
  EXPECT_EQ(scan.in("ushers"), 0b1011U);
  EXPECT_EQ(scan.in("shis"), 0b0100U);
  EXPECT_EQ(scan.in(""), 0U);
  EXPECT_EQ(scan.in("h\xFF"
                    "e"),
            0U);
}

TEST(WordScan, AgreesWithASearchForEachWord) {
  std::mt19937 random(7);  // NOLINT: the same each time
  const auto text = [&](std::size_t length) {
    std::string made;
    for (std::size_t i = 0; i < length; ++i) made += static_cast<char>('a' + random() % 3);
    return made;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts;
    std::vector<ScanWord> words;
    for (int i = 0; i < 8; ++i) texts.push_back(text(1 + random() % 5));
    for (int i = 0; i < 8; ++i) words.push_back({texts[static_cast<std::size_t>(i)], i});
    const WordScan scan(words);
    const std::string line = text(random() % 20);
    std::uint64_t expected = 0;
    for (const ScanWord& word : words) {
      if (line.find(word.text) != std::string::npos) expected |= std::uint64_t{1} << static_cast<unsigned>(word.bit);
    }
    EXPECT_EQ(scan.in(line), expected) << "round " << round << ": " << line;
  }
}

}  // namespace
}  // namespace yoke::check
