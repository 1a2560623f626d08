#include "yoke/report/html.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/report/well_formed_testing.h"

namespace yoke::report {
namespace {

bool contains(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

TEST(Html, AFoldedTextStandsUnderItsLine) {
  HtmlPage page{.title = "t"};
  page.blocks = {HtmlPreformatted{.text = "much", .folded_under = "129 <lines>"}};
  const std::string html = render_html(page);
  EXPECT_EQ(find_xml_error(html), std::nullopt);
  EXPECT_NE(html.find("<details><summary>129 &lt;lines&gt;</summary>"), std::string::npos) << html;
}

TEST(Html, PageIsCompleteAndNeedsNothingFromElsewhere) {
  HtmlPage page{.title = "Check of desk"};
  page.blocks = {HtmlParagraph{"text"}, LineChart{.title = "a"}, BarChart{.title = "b"}};
  const std::string html = render_html(page);
  EXPECT_EQ(find_xml_error(html), std::nullopt);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  EXPECT_TRUE(contains(html, "<meta charset=\"utf-8\"/>"));
  EXPECT_TRUE(contains(html, "<meta name=\"viewport\""));
  EXPECT_TRUE(contains(html, "<title>Check of desk</title>"));
  EXPECT_TRUE(contains(html, "prefers-color-scheme:dark"));
  for (const char* outside : {"<script", "<link", "<img", "src=", "href=", "url(", "@import", "https:"}) {
    EXPECT_FALSE(contains(html, outside)) << outside;
  }
}

TEST(Html, EveryTextIsEscaped) {
  const std::string bad = "<b>&";
  HtmlPage page{.title = bad};
  page.blocks = {HtmlHeading{.text = bad},
                 HtmlParagraph{.text = bad},
                 HtmlPreformatted{.text = bad},
                 HtmlFacts{.facts = {{bad, bad}}},
                 HtmlNote{.title = bad, .text = bad},
                 Table{.title = bad, .columns = {{.header = bad}}, .rows = {{bad}}, .footnotes = {bad}}};
  const std::string html = render_html(page);
  EXPECT_FALSE(contains(html, "<b>"));
  std::size_t found = 0;
  for (std::size_t at = html.find("&lt;b&gt;&amp;"); at != std::string::npos; at = html.find("&lt;b", at + 1)) ++found;
  EXPECT_EQ(found, 13U);  // the title stands in the head and on the page
}

TEST(Html, HeadingsStandBelowTheTitle) {
  HtmlPage page;
  page.blocks = {HtmlHeading{.text = "one"}, HtmlHeading{.text = "two"}};
  EXPECT_TRUE(contains(render_html(page), "<h2>one</h2>\n<h2>two</h2>\n"));
}

TEST(Html, PreformattedTextKeepsItsLines) {
  HtmlPage page;
  page.blocks = {HtmlPreformatted{.text = "\n $ yoke check\n"}};
  EXPECT_TRUE(contains(render_html(page), "<pre tabindex=\"0\">\n\n $ yoke check\n</pre>"));
}

TEST(Html, NotesSayTheirToneInWordsToo) {
  HtmlPage page;
  page.blocks = {HtmlNote{.tone = NoteTone::kGood, .text = "a"}, HtmlNote{.tone = NoteTone::kInfo, .text = "b"},
                 HtmlNote{.tone = NoteTone::kWarning, .text = "c"}, HtmlNote{.tone = NoteTone::kBad, .text = "d"}};
  const std::string html = render_html(page);
  for (const char* label : {"\"note good\"", ">Good:<", "\"note info\"", ">Note:<", "\"note warning\"", ">Warning:<",
                            "\"note bad\"", ">Problem:<"}) {
    EXPECT_TRUE(contains(html, label)) << label;
  }
}

TEST(Html, TableShowsAlignmentAndFootnotes) {
  HtmlPage page;
  page.blocks = {
      Table{.title = "Links",
            .columns = {{.header = "link", .fit = ColumnFit::kShrinks}, {.header = "rate", .align = TextAlign::kRight}},
            .rows = {{"a", "1"}},
            .footnotes = {"one second"}}};
  const std::string html = render_html(page);
  EXPECT_TRUE(contains(html, "<caption>Links</caption>"));
  EXPECT_TRUE(contains(html, "<th scope=\"col\" class=\"right\">rate</th>"));
  EXPECT_TRUE(contains(html, "<tr><td class=\"shrinks\">a</td><td class=\"right\">1</td></tr>"));
  EXPECT_TRUE(contains(html, ">one second</p>"));
}

TEST(HtmlDeathTest, RowWithTheWrongNumberOfCellsIsABug) {
  HtmlPage page;
  page.blocks = {Table{.columns = {{.header = "a"}}, .rows = {{"1", "2"}}}};
  EXPECT_DEATH(render_html(page), "2 against 1");
}

RC_GTEST_PROP(HtmlProperty, PagesAreWellFormedForAnyText, ()) {
  const auto text = [] {
    std::string joined;
    for (const std::string& piece :
         *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(hostile_pieces()))) {
      joined += piece;
    }
    return joined;
  };
  HtmlPage page{.title = text()};
  page.blocks = {HtmlHeading{.text = text()},
                 HtmlParagraph{.text = text()},
                 HtmlPreformatted{.text = text()},
                 HtmlFacts{.facts = {{text(), text()}}},
                 HtmlNote{.tone = NoteTone::kBad, .title = text(), .text = text()},
                 Table{.title = text(), .columns = {{.header = text()}}, .rows = {{text()}}, .footnotes = {text()}},
                 LineChart{.title = text(), .series = {{.name = text(), .points = {{1, 1}}}}},
                 BarChart{.title = text(), .categories = {text()}, .series = {{.name = text(), .values = {1}}}}};
  RC_ASSERT(find_xml_error(render_html(page)) == std::nullopt);
}

}  // namespace
}  // namespace yoke::report
