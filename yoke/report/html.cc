#include "yoke/report/html.h"

#include <fmt/format.h>

#include <string_view>

#include "yoke/base/check.h"
#include "yoke/report/svg_chart.h"
#include "yoke/report/xml.h"

namespace yoke::report {
namespace {

// No '<' and no '&' in it: then it means the same to an HTML and to an XML reader.
constexpr std::string_view kStyle =
    R"(:root{color-scheme:light dark;--ink:#222;--paper:#fff;--faint:#595959;--rule:#d8d8d8;--sunk:#f5f5f5;
--good:#00734f;--info:#0072b2;--warning:#a85100;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#161616;--faint:#a8a8a8;--rule:#3a3a3a;--sunk:#202020;
--good:#3ecf9e;--info:#56b4e9;--warning:#f0a45d;--bad:#ff8a80}}
body{font:16px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:break-word}
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2rem}h3{font-size:1.05rem}
h1,h2,h3{line-height:1.25}
pre{background:var(--sunk);padding:.75rem 1rem;overflow-x:auto;border-radius:4px;font-size:.85rem}
.text{white-space:pre-line}
.scroll{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.3rem 1.2rem .3rem 0;text-align:left;vertical-align:top;white-space:pre}
th{border-bottom:2px solid var(--rule)}td{border-bottom:1px solid var(--rule)}
.right{text-align:right}.centre{text-align:center}.shrinks{white-space:pre-wrap}
.footnote{color:var(--faint);font-size:.85rem;margin:.2rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.5rem}
dt{color:var(--faint)}dd{margin:0;min-width:0;white-space:pre-wrap}
.note{border-left:4px solid var(--tone);background:var(--sunk);padding:.5rem 1rem;margin:.75rem 0}
.note .label{color:var(--tone);font-weight:600}
.good{--tone:var(--good)}.info{--tone:var(--info)}.warning{--tone:var(--warning)}.bad{--tone:var(--bad)}
figure{margin:1.25rem 0;overflow-x:auto}
@media (max-width:40rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}
)";

std::string render_block(const HtmlHeading& heading) { return fmt::format("<h2>{}</h2>\n", escape_xml(heading.text)); }

std::string render_block(const HtmlParagraph& paragraph) {
  return fmt::format("<p class=\"text\">{}</p>\n", escape_xml(paragraph.text));
}

std::string render_block(const HtmlPreformatted& preformatted) {
  // HTML drops a line break right behind the tag: this one is given for it, so that the text keeps its own. The pane
  // scrolls, so it must be reachable by keyboard.
  std::string html = fmt::format("<pre tabindex=\"0\">\n{}</pre>\n", escape_xml(preformatted.text));
  if (preformatted.folded_under.empty()) return html;
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_xml(preformatted.folded_under), html);
}

std::string render_block(const HtmlFacts& facts) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : facts.facts) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_xml(name), escape_xml(value));
  }
  return html + "</dl>\n";
}

struct ToneWords {
  std::string_view css_class;
  std::string_view label;
};

ToneWords words_of(NoteTone tone) {
  switch (tone) {
    case NoteTone::kGood:
      return {"good", "Good"};
    case NoteTone::kInfo:
      return {"info", "Note"};
    case NoteTone::kWarning:
      return {"warning", "Warning"};
    case NoteTone::kBad:
      return {"bad", "Problem"};
  }
  return {"info", "Note"};
}

std::string render_block(const HtmlNote& note) {
  const ToneWords words = words_of(note.tone);
  std::string html = fmt::format("<div class=\"note {}\" role=\"note\"><span class=\"label\">{}:</span> ",
                                 words.css_class, words.label);
  if (!note.title.empty()) html += fmt::format("<strong>{}</strong>", escape_xml(note.title));
  const std::string_view tag = note.title.empty() ? "span" : "div";
  if (!note.text.empty()) html += fmt::format("<{0} class=\"text\">{1}</{0}>", tag, escape_xml(note.text));
  return html + "</div>\n";
}

std::string cell_class(const TableColumn& column) {
  std::string names;
  if (column.align == TextAlign::kRight) names = "right";
  if (column.align == TextAlign::kCentre) names = "centre";
  if (column.fit == ColumnFit::kShrinks) names += names.empty() ? "shrinks" : " shrinks";
  return names.empty() ? names : fmt::format(" class=\"{}\"", names);
}

std::string render_block(const Table& table) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  if (!table.title.empty()) html += fmt::format("<caption>{}</caption>\n", escape_xml(table.title));
  html += "<thead><tr>";
  for (const TableColumn& column : table.columns) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>", cell_class(column), escape_xml(column.header));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    YOKE_CHECK_EQ(row.size(), table.columns.size());
    html += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      html += fmt::format("<td{}>{}</td>", cell_class(table.columns[c]), escape_xml(row[c]));
    }
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  for (const std::string& footnote : table.footnotes) {
    html += fmt::format("<p class=\"footnote text\">{}</p>\n", escape_xml(footnote));
  }
  return html;
}

std::string render_block(const HtmlFoldedTable& folded) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_xml(folded.folded_under),
                     render_block(folded.table));
}

std::string render_block(const LineChart& chart) {
  return fmt::format("<figure>{}</figure>\n", render_svg(chart, {.use = SvgUse::kEmbedded}));
}

std::string render_block(const BarChart& chart) {
  return fmt::format("<figure>{}</figure>\n", render_svg(chart, {.use = SvgUse::kEmbedded}));
}

}  // namespace

std::string render_html(const HtmlPage& page) {
  const std::string title = escape_xml(page.title.empty() ? "yoke" : page.title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{0}</title>\n"
      "<style>\n{1}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      title, kStyle, chart_style(SvgUse::kEmbedded));
  for (const HtmlBlock& block : page.blocks) {
    html += std::visit([](const auto& content) { return render_block(content); }, block);
  }
  return html + "</body>\n</html>\n";
}

}  // namespace yoke::report
