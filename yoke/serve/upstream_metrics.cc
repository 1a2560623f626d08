#include "yoke/serve/upstream_metrics.h"

#include <charconv>
#include <initializer_list>
#include <map>
#include <string>

#include "yoke/base/text.h"

namespace yoke::serve {
namespace {

struct Series {
  double sum = 0;
  int count = 0;  // a server has one for each of its engines
};

// Behind the labels, in which a quoted value may hold anything.
std::size_t end_of_labels(std::string_view line, std::size_t at) {
  bool is_quoted = false;
  for (; at < line.size(); ++at) {
    if (is_quoted && line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && line[at] == '}') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

void take_line(std::string_view line, std::map<std::string, Series, std::less<>>& all) {
  if (line.empty() || line.front() == '#') return;
  const std::size_t name_end = line.find_first_of("{ ");
  if (name_end == std::string_view::npos) return;
  const std::size_t value_at = line[name_end] == '{' ? end_of_labels(line, name_end) : name_end;
  if (value_at == std::string_view::npos) return;
  const std::string_view rest = trim(line.substr(value_at));
  double value = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (failure != std::errc{} || !(value >= 0 && value < 1e15)) return;  // NaN too
  Series& series = all.try_emplace(std::string(line.substr(0, name_end))).first->second;
  series.sum += value;
  ++series.count;
}

}  // namespace

UpstreamGauges read_upstream_metrics(std::string_view exposition) {
  std::map<std::string, Series, std::less<>> all;
  while (!exposition.empty()) {
    const std::size_t end = exposition.find('\n');
    take_line(trim(exposition.substr(0, end)), all);
    exposition.remove_prefix(end == std::string_view::npos ? exposition.size() : end + 1);
  }
  const auto first = [&](std::initializer_list<std::string_view> names) -> const Series* {
    for (const std::string_view name : names) {
      if (const auto found = all.find(name); found != all.end()) return &found->second;
    }
    return nullptr;
  };
  const auto sum = [&](std::initializer_list<std::string_view> names) {
    const Series* const found = first(names);
    return found ? std::optional(found->sum) : std::nullopt;
  };
  UpstreamGauges gauges;
  gauges.waiting = sum({"vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"});
  gauges.preemptions = sum({"vllm:num_preemptions_total"});
  gauges.prefix_queries = sum({"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"});
  gauges.prefix_hits = sum({"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"});
  const Series* const usage = first(
      {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "llamacpp:kv_cache_usage_ratio"});
  if (usage && usage->sum / usage->count <= 1) gauges.cache_usage = usage->sum / usage->count;
  return gauges;
}

}  // namespace yoke::serve
