// yoke watch as a whole: in a lab of two nodes, at a terminal, as a page, and as a record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "tests/running_watch.h"
#include "tests/terminal.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/http/plain_client.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::HasSubstr;

TEST(Watch, ShowsThisMachineWithoutAClusterFile) {
  const ScratchDir scratch;
  const Outcome outcome = run_yoke({"watch", "--once", "--interval", "0.3"}, {.folder = scratch.path()});
  EXPECT_THAT(outcome.exit_status, testing::AnyOf(0, 1)) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("memory free"));
  const Outcome json = run_yoke({"watch", "--once", "--json", "--interval", "0.3"}, {.folder = scratch.path()});
  const Document board = parse_json(json.out, "yoke watch");
  const Document& node = board.find("nodes")->items.at(0);
  EXPECT_TRUE(node.find("cpu_busy"));
  EXPECT_TRUE(node.find("memory_available"));
}

TEST(Watch, RefusesWhatMakesNoSense) {
  const ScratchDir scratch;
  EXPECT_EQ(run_yoke({"watch", "--interval", "0.1"}, {.folder = scratch.path()}).exit_status, 2);
  EXPECT_EQ(run_yoke({"watch", "--replay", "a", "--record", "b"}, {.folder = scratch.path()}).exit_status, 2);
  std::ofstream(scratch.path() / "no.watch") << "hello\n";
  const Outcome outcome = run_yoke({"watch", "report", "no.watch"}, {.folder = scratch.path()});
  EXPECT_NE(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("no record of 'yoke watch'"));
}

// A measurement on this machine starts no job, and shows all the same.
TEST(Watch, ShowsACommandWithoutAJobWhileItRuns) {
  const ScratchDir scratch;
  RunningWatch watch(scratch.path(), {"--json", "--interval", "0.3"});
  watch.await_samples(1);
  const auto is_shown = [&](bool wanted) {
    for (const Deadline deadline = Deadline::after(20_s); !deadline.expired();) {
      const auto line = watch.next(deadline);
      if (!line || line->find("event")->text != "sample") continue;
      const Document* const jobs = line->find("jobs");
      const bool has = jobs && std::ranges::any_of(jobs->items, [](const Document& job) {
                         return job.find("name")->text == "yoke bench memory" && !job.find("ranks");
                       });
      if (has == wanted) return true;
    }
    return false;
  };
  Process bench({.argv = {YOKE_PROGRAM, "bench", "memory", "--block", "4M", "--rounds", "100000", "--no-history"},
                 .folder = scratch.path()});
  EXPECT_TRUE(is_shown(true));
  kill(bench.pid(), SIGINT);
  bench.wait(Deadline::after(20_s));
  EXPECT_TRUE(is_shown(false));
}

// One lab for all of it, as making one takes time: rates, faults, and a node without power.
TEST(LabTimingWatch, ReportsRatesAndFaultsOfALab) {
  if (const auto why = why_no_labs({"iperf3"})) GTEST_SKIP() << *why;
  const TestLab lab;
  RunningWatch watch(lab.folder, {"--json", "--record", "lab.watch"});
  watch.await_samples(4);

  // A transfer of known size: what the samples add up to is what it moved.
  lab.exec("2", {"iperf3", "-s", "-D", "-1", "-B", "192.168.100.2"});
  double last = 0;
  const auto take_sample = [&](Deadline deadline) -> std::optional<double> {  // bytes since the one before
    const auto line = watch.next(deadline);
    if (!line || line->find("event")->text != "sample" || line->find("node")->text != "spark-2") return std::nullopt;
    const double uptime = std::atof(line->find("uptime")->text.c_str());
    const double elapsed = uptime - std::exchange(last, uptime);
    const Document* const rate = rail_of(*line, "enp1s0f0np0").find("received_bits_per_second");
    return rate ? std::atof(rate->text.c_str()) / 8 * elapsed : 0;
  };
  while (!take_sample(Deadline::after(5_s))) {
  }
  std::optional<Outcome> moved;
  std::atomic<bool> is_over{false};
  std::thread sending([&] {
    moved = lab.exec("1", {"iperf3", "-c", "192.168.100.2", "-B", "192.168.100.1", "-b", "800M", "-t", "3", "-J"});
    is_over = true;
  });
  double bytes = 0;
  int quiet = 0;  // samples after the end
  for (const Deadline deadline = Deadline::after(30_s); quiet < 2 && !deadline.expired();) {
    const auto more = take_sample(deadline);
    if (!more) continue;
    bytes += *more;
    if (is_over) ++quiet;
  }
  sending.join();
  ASSERT_EQ(moved->exit_status, 0) << moved->err << moved->out;
  const Document result = parse_json(moved->out, "iperf3");
  const double sent = std::atof(result.find("end")->find("sum_received")->find("bytes")->text.c_str());
  ASSERT_GT(sent, 100e6);
  EXPECT_NEAR(bytes / sent, 1.0, 0.03);

  struct LabFault {
    const char *fault, *rule;
  };
  for (const LabFault& each : {LabFault{"rail-down", "rail-down"}, LabFault{"narrow-pcie", "pcie-narrow"},
                               LabFault{"port-speed-100", "port-slow"}, LabFault{"cable-pulled", "port-down"}}) {
    ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, each.fault, "--node", "2"}).ok()) << each.fault;
    const auto begun = watch.until("finding-begins", each.rule, "spark-2", 8_s);
    ASSERT_TRUE(begun) << each.fault;
    EXPECT_LT(*begun, 3) << each.fault;
    ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "clear"}).ok());
    const auto ended = watch.until("finding-ends", each.rule, "spark-2", 8_s);
    ASSERT_TRUE(ended) << each.fault;
    EXPECT_LT(*ended, 3) << each.fault;
    RecordProperty(each.fault, fmt::format("{:.2f} s, ended {:.2f} s", *begun, *ended));
  }

  ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "power-off", "--node", "2"}).ok());
  const auto gone = watch.until("finding-begins", "node-unreachable", "spark-2", 10_s);
  ASSERT_TRUE(gone);
  EXPECT_LT(*gone, 3);
  ASSERT_TRUE(lab.yoke({"lab", "fault", "--name", lab.name, "power-on", "--node", "2"}).ok());
  EXPECT_TRUE(watch.until("finding-ends", "node-unreachable", "spark-2", 20_s));

  // Killed, its record has everything up to the last second.
  kill(watch.process().pid(), SIGKILL);
  watch.process().wait(Deadline::after(5_s));
  const Outcome replayed = lab.yoke({"watch", "--replay", "lab.watch", "--speed", "0", "--json"});
  for (const char* rule : {"rail-down", "pcie-narrow", "port-slow", "port-down", "node-unreachable"}) {
    EXPECT_THAT(replayed.out, HasSubstr(fmt::format("\"event\":\"finding-begins\",\"rule\":\"{}\"", rule)));
  }
  const Outcome report = lab.yoke({"watch", "report", "lab.watch", "-o", "lab.html"});
  ASSERT_TRUE(report.ok()) << report.err;
  EXPECT_THAT(read_file(lab.folder / "lab.html"), HasSubstr("spark-2 A in"));
}

TEST(Watch, ReportsGpusThatThrottleFallOffAndComeBack) {
  if (!find_program("cc")) GTEST_SKIP() << "cc is not installed";
  const ScratchDir scratch;
  run_or_throw({.argv = {"cc", "-shared", "-fPIC", "-o", scratch.path() / "libnvidia-ml.so.1",
                         kSourceFolder / "tests" / "fake_nvml_load.c"}});
  const auto state = scratch.path() / "state";
  write_file_atomically(state, "........");
  RunningWatch watch(scratch.path(), {"--json", "--interval", "0.3"},
                     {{"LD_LIBRARY_PATH", scratch.path().native()}, {"FAKE_NVML_STATE", state.native()}});
  const auto sample = watch.next(Deadline::after(10_s));
  ASSERT_TRUE(sample);
  const std::vector<Document>& gpus = sample->find("gpus")->items;
  ASSERT_EQ(gpus.size(), 8U);
  EXPECT_EQ(gpus[0].find("memory_used")->text, std::to_string(200LL << 30));
  EXPECT_FALSE(gpus[7].find("memory_used")) << "absent, not 0";
  EXPECT_EQ(gpus[7].find("power_w")->text, "900");
  EXPECT_EQ(gpus[0].find("ecc_uncorrected")->text, "0");
  EXPECT_FALSE(gpus[7].find("ecc_uncorrected")) << "absent, not 0";
  // The counters of NVLink are read a moment before the sample's clock: one of some samples is close.
  const auto has_nvlink_rates = [&] {
    for (int i = 0; i < 20; ++i) {
      const auto line = watch.next(Deadline::after(10_s));
      if (!line || line->find("event")->text != "sample") continue;
      const Document& gpu = line->find("gpus")->items.at(3);
      EXPECT_FALSE(line->find("gpus")->items.at(7).find("nvlink_sent_bytes_per_second"));
      const Document* const in = gpu.find("nvlink_received_bytes_per_second");
      const Document* const out = gpu.find("nvlink_sent_bytes_per_second");
      if (!in || !out) continue;
      const auto is_close = [](const Document& rate, double gib) {
        return std::abs(std::atof(rate.text.c_str()) / (gib * (1 << 30)) - 1) < 0.05;
      };
      if (!is_close(*in, 60) || !is_close(*out, 40)) continue;
      // The second sample can be compared with the first: what this GPU's units did.
      const Document& first = line->find("gpus")->items.at(0);
      EXPECT_EQ(first.find("engine_active")->text, "0.975");
      EXPECT_EQ(first.find("memory_active")->text, "0.4");
      EXPECT_FALSE(first.find("tensor_active")) << "not supported is absent";
      EXPECT_FALSE(gpu.find("engine_active"));
      return true;
    }
    return false;
  };
  EXPECT_TRUE(has_nvlink_rates());
  const std::string node = sample->find("node")->text;
  write_file_atomically(state, "...t....");
  EXPECT_TRUE(watch.until("finding-begins", "gpu-throttled", node, 5_s));
  write_file_atomically(state, "......e.");
  EXPECT_TRUE(watch.until("finding-begins", "gpu-ecc", node, 5_s));
  write_file_atomically(state, ".....x..");
  EXPECT_TRUE(watch.until("finding-begins", "gpu-dead", node, 5_s));
  write_file_atomically(state, "........");
  EXPECT_TRUE(watch.until("finding-ends", "gpu-dead", node, 5_s));
}

TEST(WatchPage, ShowsItselfInABrowser) {
  if (!find_program("chromium")) GTEST_SKIP() << "chromium is not installed";
  const ScratchDir scratch;
  RunningWatch watch(scratch.path(), {"--page", "--listen", "127.0.0.1:0", "--interval", "0.3"});
  const Endpoint server = watch.page();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // until the second sample
  const Outcome browser =
      run({.argv = {"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    "--user-data-dir=" + (scratch.path() / "profile").native(), "--virtual-time-budget=6000",
                    "--dump-dom", fmt::format("http://{}/?once", to_string(server))},
           .folder = scratch.path(),
           .timeout = 60_s});
  EXPECT_THAT(browser.out, HasSubstr("<article")) << browser.err;
  EXPECT_THAT(browser.out, HasSubstr("cpu")) << browser.err;
}

TEST(WatchPage, ServesThePageItsEventsAndMetrics) {
  const ScratchDir scratch;
  RunningWatch watch(scratch.path(), {"--page", "--listen", "127.0.0.1:0", "--interval", "0.3"});
  const Endpoint server = watch.page();
  const auto get = [&](const std::string& path) { return http::ask(server, {.path = path}, Deadline::after(5_s)); };
  const http::HttpAnswer page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(*page.header("content-security-policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(get("/watch.js").status, 200);
  EXPECT_EQ(get("/nothing").status, 404);
  std::string metrics;
  for (const Deadline deadline = Deadline::after(10_s); !deadline.expired();) {
    metrics = get("/metrics").body;
    if (metrics.find("yoke_cpu_busy_ratio{") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_THAT(metrics, HasSubstr("yoke_node_up{hostname="));
  EXPECT_THAT(metrics, HasSubstr("yoke_cpu_busy_ratio{"));
  Socket events = connect_tcp(server, {}, Deadline::after(2_s));
  events.send_all("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", Deadline::after(2_s));
  std::string stream;
  for (const Deadline deadline = Deadline::after(10_s);
       stream.find("event: board") == std::string::npos && !deadline.expired();) {
    std::byte byte{};
    events.receive_exact({&byte, 1}, deadline);
    stream += static_cast<char>(byte);
  }
  EXPECT_THAT(stream, HasSubstr("text/event-stream"));
  EXPECT_THAT(stream, HasSubstr("event: history"));
  // A second one finds the port taken.
  const Outcome second =
      run_yoke({"watch", "--page", "--listen", to_string(server)}, {.folder = scratch.path(), .timeout = 10_s});
  EXPECT_THAT(second.err, HasSubstr("in use"));
  kill(watch.process().pid(), SIGTERM);
  EXPECT_TRUE(watch.process().wait(Deadline::after(10_s)));
}

TEST(WatchScreen, ShowsNodesTakesKeysAndRestoresTheTerminal) {
  const ScratchDir scratch;
  Terminal terminal(scratch.path(), {"watch", "--interval", "0.3"});
  ASSERT_TRUE(terminal.shows("memory free")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("ok"));
  terminal.type("2");
  ASSERT_TRUE(terminal.shows("discards")) << terminal.screen();
  terminal.type("?");
  ASSERT_TRUE(terminal.shows("this help"));
  terminal.type("q");
  EXPECT_THAT(terminal.exit_status(), testing::AnyOf(0, 1));
  EXPECT_THAT(terminal.screen(), HasSubstr("\033[?1049l")) << "the screen from before is back";
}

// Rows and columns that the cursor is sent to, after this place in what was written.
std::pair<int, int> largest_place(std::string_view screen, std::size_t from) {
  std::pair<int, int> largest{0, 0};
  for (std::size_t at = screen.find("\033[", from); at != std::string_view::npos; at = screen.find("\033[", at + 2)) {
    int row = 0;
    int column = 0;
    char end = 0;
    const std::string sequence(screen.substr(at + 2, 12));
    if (std::sscanf(sequence.c_str(), "%d;%d%c", &row, &column, &end) != 3 || end != 'H') continue;
    largest = {std::max(largest.first, row), std::max(largest.second, column)};
  }
  return largest;
}

// SGR sequences that choose a colour: 30 to 49.
bool has_colour(std::string_view screen) {
  for (std::size_t at = screen.find("\033["); at != std::string_view::npos; at = screen.find("\033[", at + 2)) {
    const std::size_t end = screen.find_first_not_of("0123456789;", at + 2);
    if (end == std::string_view::npos || screen[end] != 'm') continue;
    for (const std::string& number : split(screen.substr(at + 2, end - at - 2), ';')) {
      const int value = std::atoi(number.c_str());
      if (value >= 30 && value < 50) return true;
    }
  }
  return false;
}

// A terminal that knows none, and a person who wants none.
TEST(WatchScreen, IsReadableWithoutColour) {
  const ScratchDir scratch;
  const auto shown = [&](const TerminalOptions& options) {
    Terminal terminal(scratch.path(), {"watch", "--interval", "0.3"}, options);
    EXPECT_TRUE(terminal.shows("memory free")) << terminal.screen();
    terminal.type("q");
    EXPECT_THAT(terminal.exit_status(), testing::AnyOf(0, 1));
    return terminal.screen();
  };
  EXPECT_TRUE(has_colour(shown({})));
  EXPECT_FALSE(has_colour(shown({.environment = {{"TERM", "vt100"}}})));
  EXPECT_FALSE(has_colour(shown({.environment = {{"NO_COLOR", "1"}}})));
  Terminal unknown(scratch.path(), {"watch"}, {.environment = {{"TERM", "no-such-terminal"}}});
  EXPECT_TRUE(unknown.shows("this terminal cannot show a screen")) << unknown.screen();
  EXPECT_NE(unknown.exit_status(), 0);
}

TEST(WatchScreen, FollowsTheSizeOfTheTerminal) {
  const ScratchDir scratch;
  Terminal terminal(scratch.path(), {"watch", "--interval", "0.3"}, {.columns = 30});
  ASSERT_TRUE(terminal.shows("1 nodes 2 rails")) << terminal.screen();
  EXPECT_EQ(terminal.screen().find("q quit"), std::string::npos) << "cut off at 30 columns";
  terminal.resize(120, 40);
  ASSERT_TRUE(terminal.shows("q quit")) << terminal.screen();
  terminal.resize(20, 5);
  ASSERT_TRUE(terminal.shows("\033[H\033[2J")) << "drawn again";
  const std::size_t from = terminal.screen().size();
  terminal.type("2");
  terminal.type("1");
  ASSERT_TRUE(terminal.shows("state")) << terminal.screen();
  EXPECT_LE(largest_place(terminal.screen(), from).first, 5);
  EXPECT_LE(largest_place(terminal.screen(), from).second, 20);
  terminal.type("q");
  EXPECT_THAT(terminal.exit_status(), testing::AnyOf(0, 1));
}

TEST(WatchScreen, IsSuspendedAndContinued) {
  const ScratchDir scratch;
  Terminal terminal(scratch.path(), {"watch", "--interval", "0.3"},
                    {.script = "\"$@\"; echo the shell is back; read line; fg; echo watch ended with $?"});
  ASSERT_TRUE(terminal.shows("memory free")) << terminal.screen();
  EXPECT_FALSE(terminal.echoes());
  terminal.type("\x1a");  // Ctrl-Z
  ASSERT_TRUE(terminal.shows("\033[?1049l")) << "the screen from before: " << terminal.screen();
  ASSERT_TRUE(terminal.shows("the shell is back")) << terminal.screen();
  EXPECT_TRUE(terminal.echoes());
  terminal.type("\n");
  ASSERT_TRUE(terminal.shows("\033[?1049h")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("memory free")) << terminal.screen();
  EXPECT_FALSE(terminal.echoes());
  terminal.type("2");
  ASSERT_TRUE(terminal.shows("discards")) << "it takes keys again: " << terminal.screen();
  terminal.type("q");
  ASSERT_TRUE(terminal.shows("watch ended with")) << terminal.screen();
  EXPECT_TRUE(terminal.echoes());
}

TEST(WatchScreen, IsRestoredAfterAKill) {
  const ScratchDir scratch;
  Terminal terminal(scratch.path(), {"watch", "--interval", "0.3"});
  ASSERT_TRUE(terminal.shows("memory free")) << terminal.screen();
  kill(terminal.pid(), SIGKILL);
  EXPECT_TRUE(terminal.shows("\033[?1049l")) << terminal.screen();
}

}  // namespace
}  // namespace yoke::tests
