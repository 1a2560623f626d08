#include "yoke/report/wrap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/text.h"
#include "yoke/report/values_testing.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::report {
namespace {

using Lines = std::vector<std::string>;

TEST(WrapText, BreaksAtSpacesAndDropsThemThere) {
  EXPECT_EQ(wrap_text("both halves of the cable", 11), (Lines{"both halves", "of the", "cable"}));
}

TEST(WrapText, LeavesATextThatFitsAsItIs) {
  EXPECT_EQ(wrap_text("  two  spaces ", 14), (Lines{"  two  spaces "}));
  EXPECT_EQ(wrap_text("", 1), (Lines{""}));
}

TEST(WrapText, BreaksALongWordBetweenCharactersAndNotBetweenBytes) {
  EXPECT_EQ(wrap_text("ééééé", 2), (Lines{"éé", "éé", "é"}));
}

TEST(WrapText, BreaksAPathBehindASlash) {
  EXPECT_EQ(wrap_text("/sys/class/infiniband", 12), (Lines{"/sys/class/", "infiniband"}));
}

TEST(WrapText, KeepsLineBreaksOfTheText) { EXPECT_EQ(wrap_text("one\r\n\ntwo", 10), (Lines{"one", "", "two"})); }

TEST(WrapText, ShowsControlCharactersAsEscapes) { EXPECT_EQ(wrap_text("\x1B[31m", 20), (Lines{"\\x1b[31m"})); }

TEST(PadText, FillsOnTheSideThatTheAlignmentNames) {
  EXPECT_EQ(pad_text("é", 4, TextAlign::kLeft), "é   ");
  EXPECT_EQ(pad_text("é", 4, TextAlign::kCentre), " é  ");
  EXPECT_EQ(pad_text("é", 4, TextAlign::kRight), "   é");
  EXPECT_EQ(pad_text("wide", 2, TextAlign::kRight), "wide");
}

RC_GTEST_PROP(WrapText, NeverExceedsTheWidthAndKeepsEveryCharacter, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::elementOf(std::vector<std::string>{"a", "bc", "é", "漢", " ", "  ", "/", "longer", "\n", ","}));
  const auto width = *rc::gen::inRange<std::size_t>(1, 12);
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  std::string joined;
  for (const std::string& line : wrap_text(text, width)) {
    RC_ASSERT(count_columns(line) <= width);
    RC_ASSERT(!find_invalid_utf8(line));
    joined += line;
  }
  RC_ASSERT(without_spaces(joined) == without_spaces(text));
}

RC_GTEST_PROP(WrapText, IsSafeToShowWhateverComesIn, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(hostile_pieces()));
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  for (const std::string& line : wrap_text(text, 7)) {
    RC_ASSERT(!find_invalid_utf8(line));
    for (const char c : line) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }
}

}  // namespace
}  // namespace yoke::report
