// The alert rules of share/prometheus: each has cases, and a real Prometheus takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "tests/running_prometheus.h"
#include "tests/running_watch.h"
#include "yoke/base/text.h"
#include "yoke/base/yaml.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

std::filesystem::path rules_file() { return kSourceFolder / "share/prometheus/yoke-alerts.yml"; }
std::filesystem::path cases_file() { return kSourceFolder / "tests/data/yoke-alerts-test.yml"; }

Document read_yaml(const std::filesystem::path& file) { return parse_yaml(read_file(file), file.native()); }

// The names of metrics in an expression or a series, which have the prefix of who defines them.
std::set<std::string> metrics_in(const std::string& text) {
  std::set<std::string> names;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    const bool is_metric = word.starts_with("yoke_") || word.starts_with("node_") || word.starts_with("DCGM_");
    if (is_metric) names.insert(word);
    word.clear();
  }
  return names;
}

std::map<std::string, std::set<std::string>> metrics_of_alerts() {
  std::map<std::string, std::set<std::string>> alerts;
  const Document rules = read_yaml(rules_file());
  for (const Document& group : rules.find("groups")->items) {
    for (const Document& rule : group.find("rules")->items) {
      alerts[rule.find("alert")->text] = metrics_in(rule.find("expr")->text);
    }
  }
  return alerts;
}

// A case without an alert says something only where the series of the rule are there.
TEST(WatchAlerts, EachHasACaseThatFiresAndOneThatDoesNot) {
  const auto alerts = metrics_of_alerts();
  std::set<std::string> firing, silent;
  const Document cases = read_yaml(cases_file());
  for (const Document& group : cases.find("tests")->items) {
    std::set<std::string> given;
    for (const Document& series : group.find("input_series")->items) {
      given.merge(metrics_in(series.find("series")->text));
    }
    for (const Document& one : group.find("alert_rule_test")->items) {
      const std::string& name = one.find("alertname")->text;
      ASSERT_TRUE(alerts.contains(name)) << "there is no alert " << name;
      if (!one.find("exp_alerts")->items.empty()) firing.insert(name);
      if (one.find("exp_alerts")->items.empty() && std::ranges::includes(given, alerts.at(name))) silent.insert(name);
    }
  }
  EXPECT_FALSE(alerts.empty());
  for (const auto& [name, metrics] : alerts) {
    EXPECT_TRUE(firing.contains(name)) << name << " has no case that fires";
    EXPECT_TRUE(silent.contains(name)) << name << " has no case with its series that does not fire";
  }
}

TEST(WatchAlerts, AreAboutMetricsThatYokeWatchPublishes) {
  const std::string published = read_file(kSourceFolder / "yoke/watch/exposition.cc");
  for (const auto& [name, metrics] : metrics_of_alerts()) {
    EXPECT_FALSE(metrics.empty()) << name;
    for (const std::string& metric : metrics) EXPECT_THAT(published, HasSubstr("\"" + metric + "\"")) << name;
  }
}

// A real Prometheus reads the rules and scrapes the page.
TEST(WatchPrometheus, TakesTheRulesAndScrapesThePage) {
  if (!find_program("prometheus") || !find_program("promtool")) GTEST_SKIP() << "prometheus is not installed";
  const Outcome checked = run({.argv = {"promtool", "check", "rules", rules_file()}, .timeout = 30_s});
  EXPECT_TRUE(checked.ok()) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("SUCCESS"));
  const ScratchDir scratch;
  // Each alert fires on the series that it is about, and on no other.
  std::string cases = read_file(cases_file());
  cases.replace(cases.find("ALERTS"), 6, rules_file().native());
  const auto tried_file = scratch.path() / "alerts-test.yml";
  write_file_atomically(tried_file, cases);
  const Outcome tried = run({.argv = {"promtool", "test", "rules", tried_file}, .timeout = 30_s});
  EXPECT_TRUE(tried.ok()) << tried.out << tried.err;
  RunningWatch watch(scratch.path(), {"--page", "--listen", "127.0.0.1:0", "--interval", "0.3"});
  const Endpoint page = watch.page();
  RunningPrometheus prometheus(scratch.path(), page);
  EXPECT_TRUE(prometheus.answers("yoke_cpu_busy_ratio", "hostname")) << prometheus.answer();
}

}  // namespace
}  // namespace yoke::tests
