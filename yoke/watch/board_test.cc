#include "yoke/watch/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "yoke/base/text.h"
#include "yoke/spec/mesh.h"
#include "yoke/watch/exposition.h"
#include "yoke/watch/metrics_text.h"
#include "yoke/watch/page_server.h"
#include "yoke/watch/sample_testing.h"
#include "yoke/watch/screen.h"
#include "yoke/watch/watch_report.h"
#include "yoke/watch/watch_text.h"

namespace yoke::watch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> open_rules(const Board& board) {
  std::vector<std::string> rules;
  for (const TrackedFinding& finding : board.findings().open()) {
    rules.push_back(finding.finding.rule + " " + finding.finding.node.value_or("") + " " +
                    finding.finding.subject.value_or(""));
  }
  return rules;
}

// Both nodes from one second to another; `change` may alter the samples of the first.
template <class Change>
void play(Board& board, int from, int to, Change change) {
  for (int second = from; second <= to; ++second) {
    for (std::size_t node = 0; node < 2; ++node) {
      Sample sample = sample_at(second, second * 200'000'000LL, second * 200'000'000LL);
      if (node == 0) change(sample, second);
      board.take(observe(node, second + 0.2 * static_cast<double>(node), sample));
    }
  }
}
void play(Board& board, int from, int to) {
  play(board, from, to, [](Sample&, int) {});
}

TEST(Board, OfHealthyBusyNodesHasNoFindings) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 60);
  EXPECT_THAT(open_rules(board), ElementsAre());
  EXPECT_TRUE(board.findings().closed().empty());
  EXPECT_DOUBLE_EQ(board.nodes()[0].rails[0].in->value, 1.6e9);
  EXPECT_EQ(board.nodes()[0].history.times().size(), 61U);
}

TEST(Board, ShowsASilentNodeWithinThreeSeconds) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 5);
  board.tick(1e9 + 7.3);
  EXPECT_THAT(open_rules(board), ElementsAre());
  board.tick(1e9 + 7.9);
  EXPECT_THAT(open_rules(board), ElementsAre("node-unreachable spark-1 ", "node-unreachable spark-2 "));
  EXPECT_THAT(board.findings().open()[0].finding.evidence, HasSubstr("the last sample came at"));
  play(board, 9, 9);
  board.tick(1e9 + 9.5);
  EXPECT_THAT(open_rules(board), ElementsAre());
}

TEST(Board, ReportsARailWithoutALinkAndItsEnd) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 3);
  const auto cut = [](Sample& sample, int) { sample.rails[1].carrier = false; };
  play(board, 4, 4, cut);
  EXPECT_THAT(open_rules(board), ElementsAre()) << "one sample is not enough";
  play(board, 5, 6, cut);
  EXPECT_THAT(open_rules(board), ElementsAre("rail-down spark-1 railB"));
  play(board, 7, 9);
  EXPECT_THAT(open_rules(board), ElementsAre());
  ASSERT_EQ(board.findings().closed().size(), 1U);
  EXPECT_DOUBLE_EQ(*board.findings().closed()[0].began, 1e9 + 4);
  EXPECT_DOUBLE_EQ(*board.findings().closed()[0].ended, 1e9 + 6.2);
}

TEST(Board, ReportsAnIdleRailButNoShortTestOfOneRail) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 3);
  const auto idle = [](Sample& sample, int) { sample.rails[1].rx_bytes = 600'000'000; };
  play(board, 4, 6, idle);  // as 'yoke link test', which moves data over one rail for 2 s
  EXPECT_THAT(open_rules(board), ElementsAre());
  play(board, 7, 9, idle);
  EXPECT_THAT(open_rules(board), ElementsAre("rail-idle spark-1 railB"));
  EXPECT_EQ(board.series_of(board.findings().open()[0].finding), "rail/railB/in");
  EXPECT_EQ(board_json(board).find("findings")->items.at(0).find("series")->text, "rail/railB/in");
}

TEST(Board, ReportsErrorsMemoryAndPressure) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 22, [](Sample& sample, int second) {
    sample.memory.available = Bytes{std::max(4LL, 60LL - 3 * second) << 30};
    sample.memory.pressure_some_us = second * 500'000;
    sample.rails[0].rx_errors = second > 18 ? 1 : 0;
  });
  EXPECT_THAT(open_rules(board),
              testing::UnorderedElementsAre("errors-counted spark-1 railA", "memory-pressure spark-1 memory pressure",
                                            "memory-low spark-1 memory"));
  ASSERT_EQ(board.findings().closed().size(), 1U);
  EXPECT_EQ(board.findings().closed()[0].finding.rule, "memory-falling");
}

// A NIC's counters come every five seconds.
TEST(Board, ReportsARailThatPausesAloneAndPacketsWithoutABuffer) {
  Board board(plan_of_two());
  begin(board);
  const auto count = [](Sample& sample, int second, std::int64_t pauses_of_a, std::int64_t pauses_of_b) {
    const int read = second / 5 * 5;
    sample.rails[0].pause_sent = read * pauses_of_a;
    sample.rails[1].pause_sent = read * pauses_of_b;
    sample.rails[0].pause_received = read * 5000;
    sample.rails[1].discards_received = second < 20 ? 400 : 450;
  };
  play(board, 0, 19, [&](Sample& sample, int second) { count(sample, second, 3000, 2000); });
  EXPECT_THAT(open_rules(board), ElementsAre()) << "a busy fabric pauses both alike";
  play(board, 20, 40, [&](Sample& sample, int second) { count(sample, second, 3000, 2); });
  EXPECT_THAT(open_rules(board), ElementsAre("rail-pauses spark-1 railA"));
  ASSERT_EQ(board.findings().closed().size(), 1U);
  EXPECT_EQ(board.findings().closed()[0].finding.rule, "rail-losses");
  EXPECT_THAT(exposition(board, Exposed::kOwn),
              HasSubstr("yoke_rail_pause_sent_total{hostname=\"spark-1\",device=\"railA\",rail=\"A\"} 120000\n"));
  EXPECT_THAT(exposition(board, Exposed::kOwn),
              HasSubstr("yoke_rail_receive_discards_total{hostname=\"spark-1\",device=\"railB\",rail=\"B\"} 450\n"));
  EXPECT_EQ(exposition(board, Exposed::kOwn).find("yoke_rail_pause_sent_total{hostname=\"spark-2\""), std::string::npos)
      << "absent is not 0";
  play(board, 41, 70);
  EXPECT_THAT(open_rules(board), ElementsAre());
}

TEST(Board, ReportsAnEngineThatGetsNoTokenForItself) {
  Board board(plan_of_two());
  begin(board);
  const auto engine = [](Sample& sample, int second) {
    sample.engines.resize(1);
    sample.engines[0] = {.kind = "yoke", .port = 8000, .running = 0, .canary_up = second < 10};
  };
  play(board, 0, 35, engine);
  EXPECT_THAT(open_rules(board), ElementsAre());
  play(board, 36, 45, engine);
  EXPECT_THAT(open_rules(board), ElementsAre("engine-silent spark-1 yoke at port 8000"));
  EXPECT_THAT(exposition(board, Exposed::kOwn), HasSubstr("yoke_engine_canary_up{hostname=\"spark-1\""));
  EXPECT_EQ(exposition(board, Exposed::kOwn).find("yoke_engine_canary_seconds"), std::string::npos) << "absent, not 0";
}

TEST(Board, ReportsGpusThatThrottleAreLostOrStuck) {
  Board board(plan_of_two());
  begin(board);
  const auto gpus = [](Sample& sample, int second) {
    sample.gpus.resize(3);
    for (int i = 0; i < 3; ++i) {
      GpuSample& gpu = sample.gpus[static_cast<std::size_t>(i)];
      gpu.index = i;
      gpu.name = "NVIDIA GB10";
      gpu.utilization_percent = 96;
      gpu.sm_clock_mhz = 2400;
      gpu.power_w = 80;
      gpu.xid_count = 0;
    }
    if (second >= 3 && second < 20) sample.gpus[0].lost = "GPU is lost";
    if (second >= 3) sample.gpus[1].clock_limits = {"thermal"};
    if (second >= 3) {
      sample.gpus[2].sm_clock_mhz = 600;
      sample.gpus[2].power_w = 20;
    }
  };
  play(board, 0, 6, gpus);
  EXPECT_THAT(open_rules(board), ElementsAre("gpu-dead spark-1 GPU", "gpu-throttled spark-1 GPU 1"));
  EXPECT_THAT(board.findings().open()[0].finding.evidence, HasSubstr("GPU 0: GPU is lost"));
  play(board, 7, 25, gpus);
  EXPECT_THAT(open_rules(board), ElementsAre("gpu-stuck spark-1 GPU 2", "gpu-throttled spark-1 GPU 1"));
}

TEST(Board, ReportsAnEngineThatIsRestartedAgainAndAgain) {
  Board board(plan_of_two());
  begin(board);
  // It works for 20 s, is away for 10 s, begins again; once it is killed before it has made a token.
  const auto engine = [](Sample& sample, int second) {
    const int part = second % 30;
    if (part >= 20) return;
    sample.engines.resize(1);
    sample.engines[0] = {.kind = "vllm", .port = 8000, .running = 1, .generated_tokens = second > 60 ? 0 : part * 100};
  };
  play(board, 0, 85, engine);
  EXPECT_THAT(open_rules(board), ElementsAre()) << "two restarts";
  play(board, 86, 100, engine);
  EXPECT_THAT(open_rules(board), ElementsAre("engine-restarts spark-1 vllm at port 8000"));
  EXPECT_THAT(exposition(board, Exposed::kOwn), HasSubstr("engine=\"vllm\",port=\"8000\"} 3\n"));
  play(board, 101, 760, [](Sample&, int) {});
  EXPECT_THAT(open_rules(board), ElementsAre());
}

TEST(Board, ReportsAClockThatDiffersFromTheFirstNodes) {
  Board board(plan_of_two());
  begin(board);
  const auto play_skewed = [&](int from, int to, double skew, double late) {
    for (int second = from; second <= to; ++second) {
      for (std::size_t node = 0; node < 2; ++node) {
        Sample sample = sample_at(second);
        // The clock of the head jumped too: both nodes are ahead of the times of observations.
        sample.time += 100 + (node == 1 ? skew - (second % 3 == 0 ? late : 0) : 0);
        board.take(observe(node, second + 0.2 * static_cast<double>(node), sample));
      }
    }
  };
  play_skewed(0, 20, 0, 3);
  EXPECT_THAT(open_rules(board), ElementsAre()) << "a late sample is no skew";
  play_skewed(21, 40, -5, 0);
  EXPECT_THAT(open_rules(board), ElementsAre("clock-skew spark-2 clock"));
  EXPECT_THAT(board.findings().open()[0].finding.evidence, HasSubstr("spark-1"));
  const std::vector<Metric> metrics = read_metrics(exposition(board, Exposed::kOwn));
  const auto ahead = std::ranges::find(metrics, "yoke_node_clock_ahead_seconds", &Metric::name);
  ASSERT_NE(ahead, metrics.end());
  EXPECT_NEAR(ahead->value, -5.2, 1e-3);
  play_skewed(41, 60, 0, 0);
  EXPECT_THAT(open_rules(board), ElementsAre());
}

TEST(Board, OfAMachineThatGivesNothingHasNoFindingsAndNoValues) {
  Board board(plan_of_two());
  Sample empty;
  for (int second = 0; second < 30; ++second) {
    empty.uptime = second;
    board.take(observe(0, second, empty));
    board.take(observe(1, second, empty));
  }
  EXPECT_THAT(open_rules(board), ElementsAre());
  const report::Table table = node_table(board);
  EXPECT_THAT(table.rows[0], ElementsAre("spark-1", "ok", "-", "-", "-", "-", "-", "-", "-"));
}

TEST(Board, ReportsAPortThatAgreedOnALowerRate) {
  Board board(plan_of_two());
  spec::Machine machine = machine_of_two();
  machine.driver = "580";
  machine.gpus.push_back({.index = {}, .name = "NVIDIA GB10"});
  machine.rdma_devices.push_back({.name = "roce0", .state = "ACTIVE", .interface = "railA"});
  machine.interfaces[0].rdma_device = "roce0";
  for (std::size_t node = 0; node < 2; ++node) board.take({.node = node, .time = 1e9, .machine = machine});
  const auto slow = [](Sample& sample, int second) {
    sample.rails[0].rdma_device = "roce0";
    sample.rails[0].rdma_state = "ACTIVE";
    sample.rails[0].rdma_rate = BitsPerSecond{second < 3 ? 200e9 : 100e9};
  };
  play(board, 0, 2, slow);
  EXPECT_THAT(open_rules(board), ElementsAre()) << "without NVML nothing is expected of a GPU";
  play(board, 3, 5, slow);
  EXPECT_THAT(open_rules(board), ElementsAre("port-slow spark-1 railA"));
}

TEST(FindingTracker, DropsWhatFlickers) {
  FindingTracker tracker;
  const spec::Finding finding{
      .rule = "rail-idle", .node = "a", .what = "x", .evidence = "", .consequence = "", .fix = ""};
  for (int i = 0; i < 40; ++i) {
    const std::vector<spec::Finding> found(i % 4 == 3 ? 0U : 1U, finding);
    EXPECT_TRUE(tracker.take(i, found).empty());
  }
  EXPECT_TRUE(tracker.open().empty());
}

TEST(Exposition, HasTheNamesThatDashboardsKnow) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 5, [](Sample& sample, int) {
    sample.gpus.resize(1);
    sample.gpus[0].sm_clock_mhz = 1800;
    sample.gpus[0].uuid = "GPU-1";
    sample.exporters = {"node_exporter"};
    sample.disk_free = Bytes{1 << 30};
    sample.sensors = {{.chip = "spbm", .name = "gpu", .watts = 42}};
    sample.rails.push_back({.interface = "spare", .rail = "A", .port = 1});
  });
  Sample second = sample_at(6);
  second.rails[0].rdma_device = "roce0";
  second.rails[0].rdma_state = "INIT";
  second.rails[0].rdma_physical_state = 4;
  second.rails[0].transmit_waits = 17;
  board.take(observe(1, 6, second));
  const std::vector<Metric> metrics = read_metrics(exposition(board, Exposed::kAll));
  const auto find = [&](std::string_view name, std::string_view host) -> const Metric* {
    for (const Metric& metric : metrics) {
      if (metric.name == name && metric.label("hostname") == host) return &metric;
    }
    return nullptr;
  };
  ASSERT_TRUE(find("DCGM_FI_DEV_SM_CLOCK", "spark-1"));
  EXPECT_EQ(find("DCGM_FI_DEV_SM_CLOCK", "spark-1")->value, 1800);
  EXPECT_FALSE(find("DCGM_FI_DEV_GPU_TEMP", "spark-1")) << "absent is not 0";
  EXPECT_FALSE(find("node_memory_MemAvailable_bytes", "spark-1")) << "its node_exporter publishes it";
  EXPECT_TRUE(find("node_memory_MemAvailable_bytes", "spark-2"));
  EXPECT_EQ(find("yoke_rail_receive_bits_per_second", "spark-1")->value, 1.6e9);
  EXPECT_EQ(find("node_infiniband_state_id", "spark-2")->value, 2);
  EXPECT_EQ(find("node_infiniband_physical_state_id", "spark-2")->value, 4);
  EXPECT_EQ(find("node_infiniband_port_transmit_wait_total", "spark-2")->value, 17);
  EXPECT_FALSE(find("node_infiniband_link_error_recovery_total", "spark-2")) << "absent is not 0";
  EXPECT_EQ(find("yoke_rail_rdma_active", "spark-2")->value, 0);
  EXPECT_EQ(find("yoke_disk_free_bytes", "spark-1")->value, 1 << 30);
  EXPECT_EQ(find("yoke_sensor_power_watts", "spark-1")->value, 42);
  EXPECT_TRUE(std::ranges::none_of(metrics, [](const Metric& metric) { return metric.label("device") == "spare"; }))
      << "a port without a cable is no rail that is down";
  EXPECT_EQ(exposition(board, Exposed::kOwn).find("DCGM_"), std::string::npos);
  EXPECT_EQ(exposition(board, Exposed::kTextfile).find("\nnode_"), std::string::npos);
}

TEST(Board, ShowsNvlinkRatesAndMemoryErrors) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 5, [](Sample& sample, int second) {
    sample.gpus.resize(2);
    sample.gpus[1].index = 1;
    sample.gpus[0].nvlink_rx_bytes = second * 60'000'000'000LL;
    sample.gpus[0].nvlink_tx_bytes = second * 40'000'000'000LL;
    sample.gpus[0].ecc_corrected = 12;
    sample.gpus[0].ecc_uncorrected = 0;
  });
  const report::Table table = gpu_table(board);
  EXPECT_THAT(table.rows[0], ElementsAre("spark-1", "0", "-", "-", "-", "-", "-", "", "12/0", "60 GB/s", "40 GB/s"));
  EXPECT_THAT(table.rows[1], ElementsAre("spark-1", "1", "-", "-", "-", "-", "-", "", "-", "-", "-"));
  EXPECT_THAT(board.nodes()[0].history.last("gpu/0/nvlink/in", 1), ElementsAre(testing::DoubleNear(60e9, 1e5)));
  const std::string metrics = exposition(board, Exposed::kAll);
  EXPECT_THAT(metrics, HasSubstr("yoke_gpu_nvlink_receive_bytes_total{hostname=\"spark-1\",gpu=\"0\"} 300000000000\n"));
  const std::vector<Metric> all = read_metrics(metrics);
  const auto values = [&](std::string_view name) {
    std::vector<double> found;
    for (const Metric& metric : all) {
      if (metric.name == name) found.push_back(metric.value);
    }
    return found;
  };
  EXPECT_THAT(values("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"), ElementsAre(12)) << "GPU 1 gives none";
  EXPECT_THAT(values("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"), ElementsAre(0));
  EXPECT_THAT(values("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"), ElementsAre(testing::DoubleNear(97656.25, 1)));
  EXPECT_THAT(values("yoke_gpu_nvlink_transmit_bytes_total"), ElementsAre(200e9));
}

TEST(Screen, FitsEverySize) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 9, [](Sample& sample, int second) { sample.rails[1].carrier = second < 5; });
  for (const ScreenView view : {ScreenView::kNodes, ScreenView::kRails, ScreenView::kGpus, ScreenView::kProcesses,
                                ScreenView::kFindings, ScreenView::kHelp}) {
    for (const auto& [width, height] : {std::pair<std::size_t, std::size_t>{80, 24}, {20, 5}, {200, 60}, {1, 1}}) {
      for (const bool utf8 : {true, false}) {
        const ScreenState state{.view = view, .scroll = 1, .zoom = 1, .sort = 2};
        const auto lines = render_screen(board, state, {.width = width, .height = height, .utf8 = utf8});
        ASSERT_EQ(lines.size(), height);
        for (const ScreenLine& line : lines) {
          EXPECT_LE(count_columns(line.text), width);
          if (!utf8) {
            EXPECT_TRUE(std::all_of(line.text.begin(), line.text.end(), [](char c) { return c >= 0x20; })) << line.text;
          }
        }
      }
    }
  }
}

TEST(Screen, ShowsNodesPlotsAndFindingsIn80By24) {
  Board board(plan_of_two());
  begin(board);
  play(board, 0, 9, [](Sample& sample, int second) { sample.rails[1].carrier = second < 5; });
  std::string text;
  for (const ScreenLine& line : render_screen(board, {}, {})) text += line.text + "\n";
  EXPECT_THAT(text, HasSubstr("1 finding"));
  EXPECT_THAT(text, HasSubstr("spark-2  ok"));
  EXPECT_THAT(text, HasSubstr("tokens/s"));
  EXPECT_THAT(text, HasSubstr("error rail-down since"));
  EXPECT_THAT(text, HasSubstr("rail A in"));
  EXPECT_THAT(text, HasSubstr("\u2588"));
}

TEST(Screen, FollowsItsKeys) {
  ScreenState state;
  EXPECT_EQ(take_key(state, '2', 2), KeyResult::kShown);
  EXPECT_EQ(state.view, ScreenView::kRails);
  take_key(state, kKeyDown, 2);
  EXPECT_EQ(state.scroll, 1U);
  take_key(state, '1', 2);
  EXPECT_EQ(state.scroll, 0U);
  for (int i = 0; i < 5; ++i) take_key(state, kKeyDown, 2);
  EXPECT_EQ(state.selected, 1U);
  take_key(state, 'p', 2);
  EXPECT_TRUE(state.paused);
  take_key(state, 'z', 2);
  EXPECT_EQ(state.zoom, 1U);
  EXPECT_EQ(take_key(state, 'q', 2), KeyResult::kQuit);
}

TEST(WatchReport, HasFindingsIdleTimeAndPlots) {
  RecordEncoder encoder(plan_of_two());
  std::string text = encoder.header();
  for (std::size_t node = 0; node < 2; ++node) {
    text += encoder.encode({.node = node, .time = 1e9, .machine = machine_of_two()});
  }
  for (int second = 0; second < 30; ++second) {
    for (std::size_t node = 0; node < 2; ++node) {
      Sample sample = sample_at(second, second * 1'000'000LL);
      sample.rails[1].carrier = second < 5 || second > 20 || node == 1;
      text += encoder.encode(observe(node, second, sample));
    }
  }
  const std::string html = report::render_html(report_page({text, "x"}));
  EXPECT_THAT(html, HasSubstr("rail-down"));
  EXPECT_THAT(html, HasSubstr("Idle time"));
  EXPECT_THAT(html, HasSubstr("spark-1 A in"));
}

TEST(WatchPage, IsToldTheHistoryThinned) {
  Board board(plan_of_two(), 7200);
  begin(board);
  play(board, 0, 1500);
  const Document history = history_json(board);
  const Document& node = history.find("nodes")->items[0];
  const std::size_t rows = node.find("times")->items.size();
  EXPECT_LE(rows, 600U);
  EXPECT_GE(rows, 400U);
  EXPECT_EQ(node.find("series")->find("cpu")->items.size(), rows);
  EXPECT_EQ(cables_json(board.plan().cluster).items.size(), 2U);
}

TEST(WatchPage, HasACableForEachPairOfAMesh) {
  spec::Cluster mesh{.name = "mesh", .fabric = spec::Fabric{.topology = spec::Topology::kMesh}};
  for (int node = 0; node < spec::kMeshNodes; ++node) {
    spec::ClusterNode& made = mesh.nodes.emplace_back(spec::ClusterNode{.name = fmt::format("n{}", node)});
    for (int half = 0; half < spec::kMeshHalves; ++half) {
      const int peer = spec::mesh_peer(node, half);
      const int link = 10 * std::min(node, peer) + std::max(node, peer);
      made.rails.push_back(
          {fmt::format("e{}", half), *parse_ipv4_prefix(fmt::format("10.0.{}.{}/24", link, node + 1))});
    }
  }
  std::set<std::string> pairs;
  for (const Document& cable : cables_json(mesh).items) {
    pairs.insert(cable.find("a")->text + cable.find("b")->text);
  }
  EXPECT_THAT(pairs, ElementsAre("n0n1", "n0n2", "n0n3", "n1n2", "n1n3", "n2n3"));
}

}  // namespace
}  // namespace yoke::watch
