// yoke watch of labs: the page in a browser while a fault comes and goes, and eight nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "tests/running_prometheus.h"
#include "tests/running_watch.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

// What the browser prints next.
std::string next_line(Process& process, std::string& err) {
  const Deadline deadline = Deadline::after(30_s);
  while (const auto line = process.read_line(deadline)) {
    if (line->stream == OutputStream::kOut) return line->text;
    err += line->text + "\n";
  }
  return {};
}

TEST(LabTimingWatchPage, ShowsAFaultWhileABrowserLooks) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const std::filesystem::path clients = kSourceFolder / "build/clients";
  if (!find_program("node") || !std::filesystem::exists(clients / "node_modules/playwright-core")) {
    GTEST_SKIP() << "the npm packages are not there: scripts/install-clients";
  }
  if (!find_program("chromium")) GTEST_SKIP() << "chromium is not installed";
  const TestLab lab({"--nodes", "3", "--topology", "switch"});
  RunningWatch watch(lab.folder, {"--page", "--listen", "127.0.0.1:0"});
  const Endpoint page = watch.page();
  Process browser({.argv = {"node", (kSourceFolder / "tests/clients/watch.mjs").native(),
                            fmt::format("http://{}/", to_string(page)), lab.folder.native()},
                   .environment = {{"HOME", lab.folder.native()}},
                   .folder = clients});
  std::string err;
  ASSERT_EQ(next_line(browser, err), "ready") << err;
  ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "rail-down", "--node", "2"}).ok());
  const Instant begun = real_clock().now();
  const std::string shown = next_line(browser, err);
  EXPECT_LT(to_seconds(real_clock().now() - begun).value, 5) << "3 s until it is a finding, and Chromium";
  EXPECT_THAT(shown, HasSubstr("spark-2")) << err;
  EXPECT_THAT(shown, HasSubstr("(rail-down)")) << err;
  ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "clear"}).ok());
  EXPECT_EQ(next_line(browser, err), "ended") << err;
  const auto end = browser.wait(Deadline::after(20_s));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_status, 0) << err << end->err;
  for (const char* name : {"healthy.png", "fault.png"}) {
    EXPECT_GT(std::filesystem::file_size(lab.folder / name), 5000U) << name;
  }
}

TEST(LabTimingWatch, ShowsEightNodes) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  if (!find_program("prometheus")) GTEST_SKIP() << "prometheus is not installed";
  const TestLab lab({"--nodes", "8"});
  RunningWatch watch(lab.folder, {"--json", "--page", "--listen", "127.0.0.1:0"});
  RunningPrometheus prometheus(lab.folder, watch.page());
  // Once each node has sent some, nothing is wrong with any.
  std::map<std::string, int> samples;
  const Deadline deadline = Deadline::after(30_s);
  while (samples.size() < 8 || std::ranges::any_of(samples, [](const auto& node) { return node.second < 3; })) {
    const auto line = watch.next(deadline);
    ASSERT_TRUE(line) << samples.size() << " nodes";
    ASSERT_EQ(line->find("event")->text, "sample") << "a finding: " << line->find("rule")->text;
    ++samples[line->find("node")->text];
  }
  EXPECT_TRUE(prometheus.answers("count(yoke_node_up == 1)", "\"8\"")) << prometheus.answer();
  ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "rail-down", "--node", "7"}).ok());
  ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "power-off", "--node", "3"}).ok());
  const Instant begun = real_clock().now();
  std::set<std::string> wanted = {"rail-down spark-7", "node-unreachable spark-3"};
  for (const Deadline limit = Deadline::after(20_s); !wanted.empty();) {
    const auto line = watch.next(limit);
    ASSERT_TRUE(line) << "not shown: " << *wanted.begin();
    if (line->find("event")->text != "finding-begins") continue;
    const std::string finding = line->find("rule")->text + " " + line->find("node")->text;
    EXPECT_TRUE(wanted.erase(finding)) << "also shown: " << finding;
  }
  EXPECT_LT(to_seconds(real_clock().now() - begun).value, 4) << "3 s, and a busy machine";
  EXPECT_TRUE(prometheus.answers("ALERTS{alertname=\"YokeNodeDown\"}", "spark-3")) << prometheus.answer();
  EXPECT_TRUE(prometheus.answers("yoke_finding{rule=\"rail-down\"}", "spark-7")) << prometheus.answer();
}

}  // namespace
}  // namespace yoke::tests
