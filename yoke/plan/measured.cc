#include "yoke/plan/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::plan {
namespace {

constexpr std::size_t kRowsMax = 100'000;

struct CsvLine {
  std::size_t number = 0;
  std::vector<std::string> cells;
};

// RFC 4180, with either line end. Quotes may span lines.
std::vector<CsvLine> split_csv(std::string_view text, std::string_view source) {
  std::vector<CsvLine> lines;
  std::size_t number = 1;
  std::size_t i = 0;
  while (i < text.size()) {
    CsvLine line{.number = number, .cells = {""}};
    bool quoted = false;
    for (; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\n') ++number;
      if (quoted) {
        if (c != '"') {
          line.cells.back() += c;
        } else if (i + 1 < text.size() && text[i + 1] == '"') {
          line.cells.back() += '"';
          ++i;
        } else {
          quoted = false;
        }
      } else if (c == '"' && line.cells.back().empty()) {
        quoted = true;
      } else if (c == ',') {
        line.cells.emplace_back();
      } else if (c == '\n') {
        ++i;
        break;
      } else if (c != '\r') {
        line.cells.back() += c;
      }
    }
    if (quoted) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: a quote is not closed", source, line.number));
    }
    const bool is_blank = line.cells.size() == 1 && trim(line.cells.front()).empty();
    if (!is_blank) lines.push_back(std::move(line));
    if (lines.size() > kRowsMax) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: more than {} rows", source, kRowsMax));
    }
  }
  return lines;
}

class Columns {
 public:
  Columns(const CsvLine& header, std::string_view source) : source_(source) {
    for (std::size_t i = 0; i < header.cells.size(); ++i) places_.emplace(trim(header.cells[i]), i);
    for (const std::string_view needed : {"id", "kind", "hardware", "n_gpus", "model", "quant", "engine", "parallelism",
                                          "batch", "ctx_or_isl", "osl_or_gen", "metric", "value", "unit"}) {
      if (places_.find(needed) == places_.end()) {
        throw Error(ErrorCode::kInvalid,
                    fmt::format("{}:{}: the column '{}' is missing", source, header.number, needed),
                    "columns are separated by commas; docs/planning.md lists them");
      }
    }
  }
  std::string text(const CsvLine& line, std::string_view name) const {
    const auto found = places_.find(name);
    if (found == places_.end() || found->second >= line.cells.size()) return "";
    return std::string(trim(line.cells[found->second]));
  }
  double number(const CsvLine& line, std::string_view name) const {
    const std::string cell = text(line, name);
    double value = 0;
    const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (failure != std::errc{} || end != cell.data() + cell.size() || !(value > 0) || value > 1e18) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: '{}' must be a number above zero, not '{}'", source_,
                                                   line.number, name, printable(cell, 40)));
    }
    return value;
  }

 private:
  std::string source_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

}  // namespace

std::vector<MeasuredRow> parse_measured(std::string_view csv, std::string_view source) {
  if (csv.starts_with("\xef\xbb\xbf")) csv.remove_prefix(3);  // spreadsheets mark UTF-8 so
  const std::vector<CsvLine> lines = split_csv(csv, source);
  if (lines.empty()) throw Error(ErrorCode::kInvalid, fmt::format("{}: there is no header line", source));
  const Columns columns(lines.front(), source);
  std::vector<MeasuredRow> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const CsvLine& line = lines[i];
    const auto text = [&](std::string_view name) { return columns.text(line, name); };
    MeasuredRow row{.id = text("id"),
                    .kind = text("kind"),
                    .hardware = text("hardware"),
                    .gpus = static_cast<int>(std::min(columns.number(line, "n_gpus"), 1e6)),
                    .model = text("model"),
                    .quant = text("quant"),
                    .engine = text("engine"),
                    .parallelism = text("parallelism"),
                    .batch = text("batch"),
                    .context = text("ctx_or_isl"),
                    .generated = text("osl_or_gen"),
                    .metric = text("metric"),
                    .value = columns.number(line, "value"),
                    .unit = text("unit"),
                    .source = text("source"),
                    .confidence = text("confidence"),
                    .note = text("note")};
    row.gpus = std::max(row.gpus, 1);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string class_of(const MeasuredRow& row) {
  const std::string& metric = row.metric;
  const auto has = [&](std::string_view part) { return metric.find(part) != std::string::npos; };
  if (row.kind == "power") return "power";
  if (row.kind == "memory") return "memory";
  if (row.kind == "image") return "images";
  if (row.kind == "net") return "collectives";
  if (row.kind == "train") return "training";
  if (has("prefill")) return "prefill";
  if (has("aggregate") || has("throughput")) return "aggregate";
  if (has("decode") || has("TPOT")) return "decode";
  return "other";
}

}  // namespace yoke::plan
