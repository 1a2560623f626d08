#include "yoke/report/xml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/report/well_formed_testing.h"

namespace yoke::report {
namespace {

using namespace std::string_literals;

TEST(EscapeXml, TurnsSpecialCharactersIntoEntities) {
  EXPECT_EQ(escape_xml("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(EscapeXml, KeepsValidTextAsItIs) { EXPECT_EQ(escape_xml("é 漢 🐂\n\t."), "é 漢 🐂\n\t."); }

TEST(EscapeXml, ReplacesWhatXmlDoesNotAllow) {
  EXPECT_EQ(escape_xml("a\0b\x1B"s), "a\uFFFDb\uFFFD");
  EXPECT_EQ(escape_xml("\xFF|\xC3|\xEF\xBF\xBF"), "\uFFFD|\uFFFD|\uFFFD");
}

// The checker itself must be able to say no.
TEST(XmlChecker, RefusesWhatIsNotWellFormed) {
  for (const char* bad : {"", "text", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a x=1/>", "<a x=\"1/>", "<a>&</a>",
                          "<a>&nbsp;</a>", "<a x=\"<\"/>", "<a x=\"1\" x=\"2\"/>", "<a>\x01</a>", "<a>\xFF</a>", "<1/>",
                          "<a><b></a></b>", "<a>\xEF\xBF\xBF</a>"}) {
    EXPECT_TRUE(find_xml_error(bad)) << bad;
  }
}

TEST(XmlChecker, AcceptsWhatIsWellFormed) {
  EXPECT_EQ(find_xml_error("<!DOCTYPE html>\n<a x=\"1\" y-z=\"&lt;\"><b/>é &amp; &#39;<c></c></a>\n"), std::nullopt);
}

RC_GTEST_PROP(EscapeXmlProperty, AnyBytesStandInTextAndInAttributes, (const std::string& bytes)) {
  std::string text = bytes;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(hostile_pieces()))) {
    text += piece;
  }
  const std::string escaped = escape_xml(text);
  RC_ASSERT(find_xml_error("<a x=\"" + escaped + "\">" + escaped + "</a>") == std::nullopt);
}

}  // namespace
}  // namespace yoke::report
