#include "yoke/watch/metrics_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace yoke::watch {
namespace {

constexpr std::size_t kMaxMetricLine = 64 << 10;
constexpr std::size_t kMaxLabels = 64;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

std::string_view take_name(std::string_view& rest) {
  std::size_t size = 0;
  while (size < rest.size() && is_name(rest[size])) ++size;
  const std::string_view name = rest.substr(0, size);
  rest.remove_prefix(size);
  return name;
}

void skip_blanks(std::string_view& rest) {
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
}

// After the opening quote.
std::optional<std::string> take_quoted(std::string_view& rest) {
  std::string value;
  while (!rest.empty()) {
    char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return value;
    if (c == '\\') {
      if (rest.empty()) return std::nullopt;
      c = rest.front() == 'n' ? '\n' : rest.front();
      rest.remove_prefix(1);
    }
    value += c;
  }
  return std::nullopt;
}

// After the opening brace, up to and with the closing one.
bool take_labels(std::string_view& rest, Metric& metric) {
  while (true) {
    skip_blanks(rest);
    if (rest.starts_with('}')) {
      rest.remove_prefix(1);
      return true;
    }
    const std::string_view key = take_name(rest);
    skip_blanks(rest);
    if (key.empty() || !rest.starts_with('=') || metric.labels.size() >= kMaxLabels) return false;
    rest.remove_prefix(1);
    skip_blanks(rest);
    if (!rest.starts_with('"')) return false;
    rest.remove_prefix(1);
    auto value = take_quoted(rest);
    if (!value) return false;
    metric.labels.emplace_back(key, *std::move(value));
    skip_blanks(rest);
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
}

std::optional<Metric> read_metric(std::string_view line) {
  skip_blanks(line);
  if (line.empty() || line.front() == '#' || line.size() > kMaxMetricLine) return std::nullopt;
  Metric metric;
  metric.name = take_name(line);
  if (metric.name.empty()) return std::nullopt;
  skip_blanks(line);
  if (line.starts_with('{')) {
    line.remove_prefix(1);
    if (!take_labels(line, metric)) return std::nullopt;
  }
  skip_blanks(line);
  if (line.starts_with('+')) line.remove_prefix(1);
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), metric.value);
  if (failure != std::errc{} || !std::isfinite(metric.value)) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (!line.empty() && line.front() != ' ' && line.front() != '\t' && line.front() != '\r') return std::nullopt;
  return metric;
}

std::string escaped_label(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::string_view Metric::label(std::string_view key) const {
  for (const auto& [label_name, text] : labels) {
    if (label_name == key) return text;
  }
  return {};
}

std::vector<Metric> read_metrics(std::string_view text) {
  text = text.substr(0, kMaxMetricsBytes);
  std::vector<Metric> metrics;
  while (!text.empty() && metrics.size() < kMaxMetrics) {
    const std::size_t end = text.find('\n');
    if (auto metric = read_metric(text.substr(0, end))) metrics.push_back(*std::move(metric));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return metrics;
}

void MetricsWriter::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsWriter::series(const Labels& labels, double value) {
  if (!std::isfinite(value)) return;
  text_ += std::exchange(head_, {});  // a family without any series is not mentioned
  text_ += name_;
  char before = '{';
  for (const auto& [key, text] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", std::exchange(before, ','), key, escaped_label(text));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

}  // namespace yoke::watch
