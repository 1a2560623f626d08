#include "yoke/why/answer.h"

#include <fmt/format.h>

#include "yoke/base/fields.h"

namespace yoke::why {
namespace {

std::string expectation_text(const std::optional<Expectation>& expected) {
  if (!expected) return "-";
  return fmt::format("{} ({} to {})", time_text(expected->value), time_text(expected->low), time_text(expected->high));
}

std::string table_text(const StepTable& table) {
  std::string text = fmt::format("{}: {}{}\n", table.title, time_text(table.seconds),
                                 table.tokens > 1.005 ? fmt::format(" for {:.1f} tokens", table.tokens) : "");
  std::size_t width = 22;
  for (const TermRow& row : table.rows) width = std::max(width, expectation_text(row.expected).size());
  text += fmt::format("  {:<12} {:>10} {:>6}  {:<{}}  {}\n", "term", "measured", "share", "expected", width, "");
  for (const TermRow& row : table.rows) {
    std::string line = fmt::format("  {:<12} {:>10} {:>5.0f}%  {:<{}}  {}", row.name, time_text(row.measured),
                                   100 * row.share, expectation_text(row.expected), width, row.detail);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + "\n";
}

Document expectation_json(const Expectation& expected) {
  return Document::map({{"value", Document::number(expected.value)},
                        {"low", Document::number(expected.low)},
                        {"high", Document::number(expected.high)},
                        {"source", Document::string(expected.source)}});
}

Document table_json(const StepTable& table) {
  Document rows = Document::list();
  for (const TermRow& row : table.rows) {
    Document one = Document::map({{"term", Document::string(row.name)},
                                  {"measured", Document::number(row.measured)},
                                  {"share", Document::number(row.share)}});
    if (row.expected) one.add("expected", expectation_json(*row.expected));
    if (!row.detail.empty()) one.add("detail", Document::string(row.detail));
    rows.items.push_back(std::move(one));
  }
  return Document::map({{"step", Document::string(table.title)},
                        {"seconds", Document::number(table.seconds)},
                        {"tokens", Document::number(table.tokens)},
                        {"terms", std::move(rows)}});
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::string rate_text(double bits_per_second) {
  if (bits_per_second >= 1e9) return fmt::format("{:.3g} Gb/s", bits_per_second / 1e9);
  return fmt::format("{:.3g} Mb/s", bits_per_second / 1e6);
}

std::string answer_text(const Answer& answer) {
  std::string text = answer.subject.empty() ? "" : answer.subject + "\n\n";
  for (const StepTable& table : answer.steps) text += table_text(table);
  for (const Blame& blame : answer.blames) {
    text += fmt::format("{}\n  {}\n", blame.what, blame.evidence);
    if (!blame.next.empty()) text += fmt::format("  Next: {}\n", blame.next);
  }
  if (answer.blames.empty()) {
    text +=
        answer.limit.empty() ? "Nothing is off.\n" : fmt::format("Nothing is off. At its limit: {}.\n", answer.limit);
  }
  for (const std::string& note : answer.notes) text += note + "\n";
  return text;
}

Document to_json(const Answer& answer) {
  Document steps = Document::list(), blames = Document::list();
  for (const StepTable& table : answer.steps) steps.items.push_back(table_json(table));
  for (const Blame& blame : answer.blames) {
    blames.items.push_back(Document::map({{"cause", to_document(blame.cause)},
                                          {"term", Document::string(blame.term)},
                                          {"what", Document::string(blame.what)},
                                          {"evidence", Document::string(blame.evidence)},
                                          {"next", Document::string(blame.next)},
                                          {"where", to_document(blame.where)}}));
  }
  return Document::map({{"subject", Document::string(answer.subject)},
                        {"steps", std::move(steps)},
                        {"blames", std::move(blames)},
                        {"limit", Document::string(answer.limit)},
                        {"notes", to_document(answer.notes)}});
}

}  // namespace yoke::why
