// The text format of Prometheus, read: what engines answer at /metrics. Lenient towards what it does not know (a line
// that makes no sense is left out), strict in its bounds.
//
//   for (const Metric& metric : read_metrics(body)) …
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke::watch {

struct Metric {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;

  std::string_view label(std::string_view key) const;  // empty where it is missing
  friend bool operator==(const Metric&, const Metric&) = default;
};

inline constexpr std::size_t kMaxMetricsBytes = 8 << 20;
inline constexpr std::size_t kMaxMetrics = 100'000;

// At most kMaxMetrics of the first kMaxMetricsBytes. Values that are no finite numbers are left out.
std::vector<Metric> read_metrics(std::string_view text);

// The reverse, for what we publish: HELP and TYPE once, then a line for each series.
class MetricsWriter {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  // Starts a family; series of it follow.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void series(const Labels& labels, double value);
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_, head_;
};

}  // namespace yoke::watch
