// A self-contained HTML page: no scripts, nothing loaded from elsewhere, readable in light and dark, printable. It can
// be mailed as one file.
//
//   HtmlPage page{.title = "Check of desk"};
//   page.blocks.push_back(HtmlNote{.tone = NoteTone::kWarning, .text = "MTU 1500 where 9000 is possible"});
//   page.blocks.push_back(table);
//   page.blocks.push_back(chart);
//   write_file("check.html", render_html(page));
//
// Every text is escaped: what a machine reported cannot become markup. The page is well-formed XML as well.
#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "yoke/report/chart.h"
#include "yoke/report/table.h"

namespace yoke::report {

struct HtmlHeading {
  std::string text{};
};

struct HtmlParagraph {
  std::string text{};
};

// Commands and their output, as they are.
struct HtmlPreformatted {
  std::string text{};
  std::string folded_under{};  // a line that stands for it until the reader opens it; empty: shown at once
};

// Names with their values: the facts of a machine.
struct HtmlFacts {
  std::vector<std::pair<std::string, std::string>> facts{};
};

// The tone is written as a word too, for readers who do not see the colour.
enum class NoteTone { kGood, kInfo, kWarning, kBad };
struct HtmlNote {
  NoteTone tone = NoteTone::kInfo;
  std::string title{};
  std::string text{};
};

// A long table, behind a line that stands for it until the reader opens it.
struct HtmlFoldedTable {
  std::string folded_under{};
  Table table{};
};

using HtmlBlock = std::variant<HtmlHeading, HtmlParagraph, HtmlPreformatted, HtmlFacts, HtmlNote, Table,
                               HtmlFoldedTable, LineChart, BarChart>;

struct HtmlPage {
  std::string title{};
  std::vector<HtmlBlock> blocks{};
};

std::string render_html(const HtmlPage& page);

}  // namespace yoke::report
