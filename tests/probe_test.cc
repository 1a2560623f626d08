// `yoke probe` as a person or a script meets it: its text and JSON for every fixture, NVML, a lab's nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/lab_fixture.h"
#include "tests/mistake.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/spec/machine.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSourceFolder / "tests" / "fixtures")) {
    if (fs::exists(entry.path() / "machine.tree")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Golden output is a text file that is reviewed as such: YOKE_WRITE_GOLDEN=1 writes what the program prints now.
void expect_golden(const std::string& file, const std::string& text) {
  const fs::path path = kSourceFolder / "tests" / "golden_probe" / file;
  if (std::getenv("YOKE_WRITE_GOLDEN")) write_file_atomically(path, text);
  ASSERT_TRUE(fs::exists(path)) << path << ": run with YOKE_WRITE_GOLDEN=1 and look at what it wrote";
  EXPECT_EQ(text, read_file(path)) << file;
}

std::string print_fixture(const std::string& name, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"probe", "--root", kSourceFolder / "tests" / "fixtures" / name};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_yoke(arguments);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return outcome.out;
}

TEST(ProbeProgram, PrintsTheGoldenTextOfEveryFixtureOnOneScreen) {
  for (const std::string& name : fixture_names()) {
    const std::string text = print_fixture(name);
    expect_golden(name + ".txt", text);
    const std::vector<std::string> lines = split(text, '\n');
    EXPECT_LE(lines.size(), 30U) << name;
    for (const std::string& line : lines) EXPECT_LE(count_columns(line), 80U) << name << ": " << line;
    EXPECT_EQ(text.find("NOT-A-SERIAL"), std::string::npos);
  }
}

TEST(ProbeProgram, PrintsTheGoldenJsonOfTheBaseMachines) {
  for (const char* name : {"spark-pair", "b300", "laptop"}) {
    const std::string json = print_fixture(name, {"--json"});
    expect_golden(std::string(name) + ".json", json);
    const Document document = parse_json(json, name);
    EXPECT_EQ(document.find("schema")->text, "1");
    EXPECT_NO_THROW(from_json<spec::Machine>(*document.find("machine")));
  }
}

TEST(ProbeProgram, EveryFieldOfTheJsonIsInTheDocument) {
  const std::string page = read_file(kSourceFolder / "docs" / "probe.md");
  std::vector<const Document*> todo;
  std::vector<Document> documents;
  for (const char* name : {"spark-pair", "b300", "laptop"}) {
    documents.push_back(parse_json(print_fixture(name, {"--json"}), name));
  }
  for (const Document& document : documents) todo.push_back(&document);
  while (!todo.empty()) {
    const Document* const document = todo.back();
    todo.pop_back();
    for (const Document& item : document->items) todo.push_back(&item);
    for (const auto& [key, value] : document->fields) {
      EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << "docs/probe.md does not explain '" << key << "'";
      todo.push_back(&value);
    }
  }
}

struct ProbeFolder : testing::Test {
  ScratchDir scratch;
  Outcome yoke(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {}) {
    return run_yoke(std::move(arguments), {.environment = std::move(environment), .folder = scratch.path()});
  }
};

class ProbeMistakes : public ProbeFolder, public testing::WithParamInterface<Mistake> {};
TEST_P(ProbeMistakes, GetOneClearErrorWithAHint) {
  fs::create_directories(scratch.path() / "empty");
  fs::create_directories(scratch.path() / "full");
  write_file_atomically(scratch.path() / "full" / "file", "");
  write_file_atomically(scratch.path() / "desk.yaml",
                        "name: desk\nnodes:\n  - { name: spark-1, address: 127.0.0.1 }\n");
  const Outcome outcome = yoke(GetParam().arguments);
  expect_clear_error(outcome, GetParam());
  EXPECT_EQ(outcome.out, "");
}
INSTANTIATE_TEST_SUITE_P(
    Lines, ProbeMistakes,
    testing::Values(
        Mistake{"NoSuchCapture", {"probe", "--root", "nowhere"}, 5, "there is no folder 'nowhere'", "--capture DIR"},
        Mistake{"FileAsCapture", {"probe", "--root", "desk.yaml"}, 4, "'desk.yaml' is no folder", "--capture DIR"},
        Mistake{"EmptyCapture", {"probe", "--root", "empty"}, 5, "there is no machine.tree", "machine.tree"},
        Mistake{"CaptureIntoAFullFolder", {"probe", "--capture", "full"}, 10, "'full' is not empty", "new folder"},
        Mistake{"CaptureBelowAFile", {"probe", "--capture", "desk.yaml/x"}, 5, "cannot make the folder", ""},
        Mistake{"HereAndNode", {"probe", "--here", "--node", "a"}, 2, "--here is about one machine", "one of them"},
        Mistake{
            "RootAndCluster", {"probe", "--root", "x", "--cluster", "desk.yaml"}, 2, "--cluster about a cluster", ""},
        Mistake{"HereAndRoot", {"probe", "--here", "--root", "x"}, 2, "--here is this machine", "one of them"},
        Mistake{"NodeWithoutCluster", {"probe", "--node", "spark-1"}, 5, "there is no cluster.yaml", "--cluster"},
        Mistake{"MistypedNode",
                {"probe", "--cluster", "desk.yaml", "--node", "sprak-1"},
                5,
                "has no node 'sprak-1'",
                "did you mean 'spark-1'?"},
        Mistake{"NoTimeAtAll", {"probe", "--timeout", "0s"}, 2, "--timeout must be above zero", "20s"},
        Mistake{"Positional", {"probe", "spark-1"}, 2, "does not take 'spark-1'", "--help"}),
    [](const auto& test) { return test.param.name; });

TEST_F(ProbeFolder, ShowsACaptureOfThisMachineAsTheMachineItself) {
  const Outcome capture = yoke({"probe", "--capture", "desk-1"});
  ASSERT_EQ(capture.exit_status, 0) << capture.err;
  EXPECT_NE(capture.out.find("yoke probe --root desk-1"), std::string::npos);
  const auto machine = [&](const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    spec::Machine found = from_json<spec::Machine>(*parse_json(outcome.out, "out").find("machine"));
    found.memory = {};  // changes from moment to moment
    found.time.error.reset();
    return found;
  };
  EXPECT_EQ(machine(yoke({"probe", "--root", "desk-1", "--json"})), machine(yoke({"probe", "--here", "--json"})));
}

// A library of our own in NVML's place, as CI has no GPU.
TEST_F(ProbeFolder, AsksNvmlAndLeavesOutWhatItDoesNotSupport) {
  if (!find_program("cc")) GTEST_SKIP() << "cc is not installed";
  const Outcome compiled = run({.argv = {"cc", "-shared", "-fPIC", "-o", scratch.path() / "libnvidia-ml.so.1",
                                         kSourceFolder / "tests" / "fake_nvml.c"}});
  ASSERT_TRUE(compiled.ok()) << compiled.err;
  const std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", scratch.path()}};
  const Outcome outcome = yoke({"probe", "--here", "--json"}, environment);
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  const spec::Machine machine = from_json<spec::Machine>(*parse_json(outcome.out, "out").find("machine"));
  EXPECT_EQ(machine.driver, "580.95.05");
  EXPECT_EQ(machine.cuda, "13.1");
  ASSERT_GE(machine.gpus.size(), 2U);
  spec::Gpu expected{.index = 0,
                     .name = "NVIDIA H200",
                     .uuid = "GPU-1",
                     .pci_address = "0000:1b:00.0",
                     .compute_capability = "9.0",
                     .memory = Bytes{150'754'820'096},
                     .memory_free = Bytes{150'000'000'000},
                     .cpu_affinity = "0-7",
                     .persistence = true,
                     .clock_mhz = 345,
                     .clock_mhz_max = 1980,
                     .power_w = 76.25,
                     .power_limit_w = 700,
                     .power_limit_default_w = 700,
                     .temperature_c = 33,
                     .utilization_percent = 97,
                     .clock_limits = {"power cap", "thermal"},
                     .nvlinks = 4,
                     .nvlinks_active = 4,
                     .nvlink_errors = 1,
                     .nvlink_errors_rising = 1,
                     .nvlink_recoveries = 2,
                     .fabric_state = "in progress",
                     .ecc_uncorrected = 3,
                     .ecc_uncorrected_total = 7,
                     .row_remap_pending = true,
                     .row_remap_failed = false,
                     .processes = {{4711, Bytes{1 << 30}}, {4712, std::nullopt}}};
  EXPECT_EQ(machine.gpus[0], expected);
  EXPECT_EQ(machine.gpus[1].memory, std::nullopt);
  EXPECT_EQ(machine.gpus[1].power_limit_w, std::nullopt);
  EXPECT_EQ(machine.gpus[1].nvlink_errors, std::nullopt) << "it refuses, the first answers";
  EXPECT_EQ(machine.gpus[1].ecc_uncorrected, std::nullopt);
  EXPECT_EQ(machine.gpus[1].nvlinks_active, 3);
  EXPECT_EQ(machine.gpus[1].pci_address, "000f:01:00.0");
  EXPECT_TRUE(machine.memory.unified);
  ASSERT_TRUE(machine.topology);
  EXPECT_EQ(machine.topology->paths[0][1], "NV3") << "three of the second's links to the switch are up";
  const Outcome broken = yoke({"probe", "--here"}, {{"LD_LIBRARY_PATH", scratch.path()}, {"FAKE_NVML", "broken"}});
  EXPECT_EQ(broken.exit_status, 0);
  EXPECT_NE(broken.out.find("NVML shows none: Driver/library version mismatch"), std::string::npos) << broken.out;
}

TEST_F(ProbeFolder, ReportsANodeThatCannotBeReachedAndGoesOn) {
  if (!find_program("ssh")) GTEST_SKIP() << "ssh is not installed";
  write_file_atomically(scratch.path() / "cluster.yaml",
                        "name: desk\nnodes:\n  - { name: spark-1, address: 127.0.0.1 }\n"
                        "  - { name: spark-2, address: 127.0.0.1, port: 1 }\n");
  const Outcome outcome = yoke({"probe", "--timeout", "5s", "--json"});
  EXPECT_EQ(outcome.exit_status, 7) << outcome.out << outcome.err;
  const Document document = parse_json(outcome.out, "out");
  EXPECT_NE(document.find("nodes")->items.at(0).find("machine"), nullptr) << "this machine, without a login";
  const Document& node = document.find("nodes")->items.at(1);
  EXPECT_EQ(node.find("error")->find("code")->text, "unavailable");
  EXPECT_EQ(node.find("machine"), nullptr);
}

spec::Machine machine_of(const TestLab& lab, const std::string& node) {
  const Outcome outcome = lab.yoke({"probe", "--node", node, "--json"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return from_json<spec::Machine>(*parse_json(outcome.out, "out").find("machine"));
}

TEST(LabProbe, ReportsWhatTheNodesAreAndWhatDiffers) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  const Outcome all = lab.yoke({"probe", "--json"});
  ASSERT_EQ(all.exit_status, 0) << all.err;
  const Document document = parse_json(all.out, "out");
  ASSERT_EQ(document.find("nodes")->items.size(), 2U);
  EXPECT_TRUE(document.find("differences")->items.empty()) << all.out;
  const spec::Machine second = from_json<spec::Machine>(*document.find("nodes")->items[1].find("machine"));
  EXPECT_EQ(second.hostname, "spark-2");
  const std::vector<const spec::NetworkInterface*> fast = spec::fast_interfaces(second);
  ASSERT_EQ(fast.size(), 4U);
  EXPECT_EQ(fast[1]->name, "enP2p1s0f0np0");
  EXPECT_EQ(fast[1]->rail, "B");
  EXPECT_EQ(to_string(fast[1]->addresses.at(0)), "192.168.101.2/24");
  EXPECT_EQ(fast[1]->ipv6_disabled, true);
  EXPECT_TRUE(fast[1]->carrier);
  EXPECT_FALSE(fast[2]->carrier);
  EXPECT_EQ(spec::find_rdma_device(second, "roceP2p1s0f0")->gid_index, 3);
}

// "enP7s7 10.77.0.2/24 global": what both tools say of links, addresses and routes, as lines.
std::string network_lines(const Document& links, const Document& routes) {
  const auto text = [](const Document& document, const char* key) {
    const Document* const field = document.find(key);
    return field ? field->text : std::string("-");
  };
  std::vector<std::string> lines;
  for (const Document& link : links.items) {
    const std::string name = text(link, "ifname");
    const Document* const info = link.find("linkinfo");
    lines.push_back(fmt::format("{} {} {} {} {} {} {}", text(link, "ifindex"), name, text(link, "mtu"),
                                text(link, "operstate"), text(link, "address"), text(link, "master"),
                                info ? text(*info, "info_kind") : "-"));
    for (const Document& flag : link.find("flags")->items) {
      if (flag.text != "M-DOWN") lines.push_back(name + " " + flag.text);  // ip's own, for a peer that is down
    }
    for (const Document& address : link.find("addr_info")->items) {
      lines.push_back(fmt::format("{} {}/{} {} {}", name, text(address, "local"), text(address, "prefixlen"),
                                  text(address, "scope"), text(address, "label")));
    }
  }
  for (const Document& route : routes.items) {
    lines.push_back(fmt::format("{} via {} dev {} proto {} scope {} src {} metric {}", text(route, "dst"),
                                text(route, "gateway"), text(route, "dev"), text(route, "protocol"),
                                text(route, "scope"), text(route, "prefsrc"), text(route, "metric")));
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

TEST(LabProbe, ReadsTheSameFromTheKernelAsIpDoes) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "3", "--topology", "ring"});
  const auto json = [&](std::vector<std::string> argv) {
    const Outcome outcome = lab.exec("2", argv);
    EXPECT_TRUE(outcome.ok()) << outcome.err;
    return parse_json(outcome.out, argv.front());
  };
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"ip", "link", "add", "br0", "type", "bridge"},
                                             {"ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"},
                                             {"ip", "link", "set", "v0", "master", "br0", "up"},
                                             {"ip", "addr", "add", "10.9.0.1/30", "dev", "br0"},
                                             {"ip", "addr", "add", "fd00::1/64", "dev", "br0"},
                                             {"ip", "link", "set", "br0", "up"},
                                             {"ip", "route", "add", "10.8.0.0/16", "via", "10.9.0.2", "metric", "77"},
                                             {"yoke", "probe", "--capture", "/tmp/capture"}}) {
    const Outcome outcome = lab.exec("2", command);
    ASSERT_TRUE(outcome.ok()) << fmt::format("{}: {}", fmt::join(command, " "), outcome.err);
  }
  const Document ours = json({"cat", "/tmp/capture/links.json"});
  EXPECT_EQ(network_lines(*ours.find("links"), *ours.find("routes")),
            network_lines(json({"ip", "-j", "-d", "addr"}), json({"ip", "-j", "route"})));
}

TEST(LabProbe, SeesTheFaultsThatALabMakes) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  ASSERT_TRUE(lab.exec("2", {"ip", "link", "set", "enP2p1s0f0np0", "mtu", "1500"}).ok());
  const Outcome text = lab.yoke({"probe"});
  EXPECT_EQ(text.exit_status, 0) << text.err;
  EXPECT_NE(text.out.find("MTU of port 0 half B"), std::string::npos) << text.out;
  ASSERT_TRUE(lab.exec("2", {"ip", "addr", "flush", "dev", "enp1s0f0np0"}).ok());
  ASSERT_TRUE(lab.exec("1", {"ip", "link", "set", "enP2p1s0f0np0", "down"}).ok());
  // The watcher brings GIDs and states in step within a moment.
  const Deadline deadline = Deadline::after(10_s);
  spec::Machine second = machine_of(lab, "spark-2");
  while ((spec::find_rdma_device(second, "rocep1s0f0")->gid_index ||
          spec::find_rdma_device(second, "roceP2p1s0f0")->state != "DOWN") &&
         !deadline.expired()) {
    second = machine_of(lab, "spark-2");
  }
  EXPECT_EQ(spec::find_rdma_device(second, "rocep1s0f0")->gid_index, std::nullopt);
  EXPECT_TRUE(spec::find_interface(second, "enp1s0f0np0")->addresses.empty());
  EXPECT_FALSE(spec::find_interface(second, "enP2p1s0f0np0")->carrier);
  EXPECT_EQ(spec::find_rdma_device(second, "roceP2p1s0f0")->state, "DOWN");
}

}  // namespace
}  // namespace yoke::tests
