#include "yoke/bench/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/report/table.h"

namespace yoke::bench {
namespace {

constexpr double kMinChange = 0.05;

std::string row_title(const RecordRow& row) {
  return row.size > 0 ? fmt::format("{}, {}", row.name, yoke::to_string(Bytes{row.size})) : row.name;
}

const RecordRow* find_row(const std::vector<RecordRow>& rows, const RecordRow& like) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const RecordRow& row) {
    return row.name == like.name && row.size == like.size && row.unit == like.unit;
  });
  return found == rows.end() ? nullptr : &*found;
}

ComparedRow compare_rows(const RecordRow& a, const RecordRow& b) {
  ComparedRow row{.a = a, .b = b};
  if (a.value <= 0 || b.value <= 0) return row;
  row.speed = less_is_better(a) ? a.value / b.value : b.value / a.value;
  const bool apart = a.high < b.low || b.high < a.low;
  if (apart && row.speed > 1 + kMinChange) row.change = Change::kFaster;
  if (apart && row.speed < 1 / (1 + kMinChange)) row.change = Change::kSlower;
  return row;
}

std::vector<std::string> find_differences(const RunRecord& a, const RunRecord& b) {
  std::vector<std::string> found;
  const auto compare = [&](std::string_view what, const std::string& x, const std::string& y) {
    if (x != y) found.push_back(fmt::format("{}: {} and {}", what, x, y));
  };
  compare("benchmark", a.benchmark, b.benchmark);
  compare("host", a.host, b.host);
  compare("processor", a.processor, b.processor);
  compare("version", a.version, b.version);
  compare("commit", a.commit, b.commit);
  const Document left = parse_json(a.settings, "settings");
  const Document right = parse_json(b.settings, "settings");
  for (const auto& [key, value] : left.fields) {
    const Document* other = right.find(key);
    if (!other || *other == value || key == kAccountKey) continue;
    compare(key, print_json(value, JsonLayout::kOneLine), print_json(*other, JsonLayout::kOneLine));
  }
  return found;
}

}  // namespace

std::string_view to_string(Change change) {
  for (const auto& [name, value] : enum_names(Change{})) {
    if (value == change) return name;
  }
  return "?";
}

Comparison compare_runs(const RunRecord& a, const RunRecord& b) {
  Comparison comparison{.differences = find_differences(a, b)};
  double logarithms = 0;
  for (const RecordRow& row : a.rows) {
    if (const RecordRow* other = find_row(b.rows, row)) {
      const ComparedRow& compared = comparison.rows.emplace_back(compare_rows(row, *other));
      logarithms += std::log(compared.speed);
      comparison.faster += compared.change == Change::kFaster;
      comparison.slower += compared.change == Change::kSlower;
    } else {
      comparison.only_in_a.push_back(row_title(row));
    }
  }
  for (const RecordRow& row : b.rows) {
    if (!find_row(a.rows, row)) comparison.only_in_b.push_back(row_title(row));
  }
  if (!comparison.rows.empty()) comparison.speed = std::exp(logarithms / static_cast<double>(comparison.rows.size()));
  return comparison;
}

Document to_json(const Comparison& comparison) {
  Document rows = Document::list();
  for (const ComparedRow& row : comparison.rows) {
    rows.items.push_back(Document::map({{"name", Document::string(row.a.name)},
                                        {"size", Document::number(row.a.size)},
                                        {"unit", Document::string(row.a.unit)},
                                        {"a", Document::number(row.a.value)},
                                        {"b", Document::number(row.b.value)},
                                        {"speed", Document::number(row.speed)},
                                        {"change", Document::string(std::string(to_string(row.change)))}}));
  }
  return Document::map({{"rows", std::move(rows)},
                        {"only_in_a", to_document(comparison.only_in_a)},
                        {"only_in_b", to_document(comparison.only_in_b)},
                        {"differences", to_document(comparison.differences)},
                        {"speed", Document::number(comparison.speed)},
                        {"faster", Document::number(std::int64_t{comparison.faster})},
                        {"slower", Document::number(std::int64_t{comparison.slower})}});
}

std::string comparison_text(const RunRecord& a, const RunRecord& b, const Comparison& comparison) {
  report::Table table{.title = fmt::format("Run {} ({}) and run {} ({})", a.id, a.time, b.id, b.time),
                      .columns = {{.header = "what"},
                                  {.header = "size", .align = report::TextAlign::kRight},
                                  {.header = fmt::format("run {}", a.id), .align = report::TextAlign::kRight},
                                  {.header = fmt::format("run {}", b.id), .align = report::TextAlign::kRight},
                                  {.header = "speed", .align = report::TextAlign::kRight},
                                  {.header = "verdict"}}};
  for (const ComparedRow& row : comparison.rows) {
    table.rows.push_back({row.a.name, row.a.size > 0 ? yoke::to_string(Bytes{row.a.size}) : "",
                          plain_number(row.a.value) + " " + row.a.unit, plain_number(row.b.value) + " " + row.b.unit,
                          fmt::format("{:.2f}x", row.speed), std::string(to_string(row.change))});
  }
  for (const std::string& difference : comparison.differences) table.footnotes.push_back("differs in " + difference);
  const auto missing = [&](const std::vector<std::string>& rows, std::int64_t id) {
    if (!rows.empty())
      table.footnotes.push_back(fmt::format(
          "{} only in run {}", rows.size() == 1 ? "1 row is" : fmt::format("{} rows are", rows.size()), id));
  };
  missing(comparison.only_in_a, a.id);
  missing(comparison.only_in_b, b.id);
  if (comparison.rows.empty()) {
    return fmt::format("Run {} ({}) and run {} ({}) have no row in common.\n", a.id, a.benchmark, b.id, b.benchmark);
  }
  std::string text = report::render_text(table, report::for_output(report::kUnlimitedWidth));
  return text + fmt::format("Of {} rows {} are faster and {} slower beyond noise; speed overall {:.2f}x.\n",
                            comparison.rows.size(), comparison.faster, comparison.slower, comparison.speed);
}

}  // namespace yoke::bench
