// The lab as its users meet it: nodes, re-execution, faults with their effect and their end, bad input, no residue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <regex>
#include <thread>

#include "tests/lab_fixture.h"
#include "tests/mistake.h"
#include "yoke/base/clock.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/spec/cluster.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

struct Lab : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
};
struct LabFaults : Lab {};

// What a node says, without the last line end.
std::string say(const TestLab& lab, const std::string& node, const std::string& script) {
  const Outcome outcome = lab.exec(node, {"sh", "-c", script});
  EXPECT_TRUE(outcome.ok()) << script << ": " << outcome.describe();
  return std::string(trim(outcome.out));
}

// The watcher and the kernel need a moment.
bool comes_true(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(5_s);
  while (!condition()) {
    if (deadline.expired()) return false;
    real_clock().sleep(50_ms);
  }
  return true;
}

TEST_F(Lab, NodesHaveTheirOwnNameProcessesFilesAndInterfaces) {
  const TestLab lab;
  EXPECT_EQ(say(lab, "1", "hostname"), "spark-1");
  EXPECT_EQ(say(lab, "spark-2", "hostname"), "spark-2");
  EXPECT_EQ(say(lab, "1", "ps -e -o pid= | sort -n | head -1 | tr -d ' '"), "1");
  EXPECT_EQ(say(lab, "1", "ip -json link | tr ',' '\\n' | grep -o 'e[nN][^\"]*np[01]' | sort"),
            "enP2p1s0f0np0\nenP2p1s0f1np1\nenp1s0f0np0\nenp1s0f1np1");
  EXPECT_NE(say(lab, "1", "ip -4 -brief addr show dev enP7s7").find("10.77.0.1/24"), std::string::npos);
  const fs::path host_file = "/etc/yoke-lab-test";
  say(lab, "1", "echo here > /etc/yoke-lab-test; echo here > /usr/yoke-lab-test");
  EXPECT_FALSE(fs::exists(host_file));
  EXPECT_FALSE(fs::exists("/usr/yoke-lab-test"));
  EXPECT_EQ(lab.exec("2", {"cat", host_file}).exit_status, 1);
}

TEST_F(Lab, NodesSeeAProgramThatWasBuiltInTmpAndItsModels) {
  const ScratchDir tree("yoke-test-tree", "/tmp");
  const fs::path program = tree.path() / "build/release/yoke";
  make_folder(program.parent_path());
  fs::copy_file(YOKE_PROGRAM, program);
  make_folder(tree.path() / "models/nano");
  write_file_atomically(tree.path() / "models/nano/config.json", "{}");
  write_file_atomically(tree.path() / "other", "");
  const std::string name = "test-" + random_token_hex(4);
  const auto yoke = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program);
    return run({.argv = std::move(arguments), .folder = tree.path(), .timeout = {60}});
  };
  ASSERT_TRUE(yoke({"lab", "up", "--name", name}).ok());
  const std::string script = fmt::format(
      "cd {} && build/release/yoke version && cat models/nano/config.json; "
      "touch models/nano/x 2>&1; ls",
      tree.path().native());
  const Outcome seen = yoke({"lab", "exec", "--name", name, "2", "--", "sh", "-c", script});
  EXPECT_TRUE(yoke({"lab", "down", "--name", name}).ok());
  EXPECT_THAT(seen.out, testing::HasSubstr("yoke 0"));
  EXPECT_THAT(seen.out, testing::HasSubstr("{}"));
  EXPECT_THAT(seen.out, testing::HasSubstr("Read-only file system"));
  EXPECT_THAT(seen.out, testing::Not(testing::HasSubstr("other"))) << "the rest of /tmp is the node's own";
}

TEST_F(Lab, ShowsTheHardwareAndTheMemoryOfANode) {
  const TestLab lab({"--memory", "256MiB"});
  EXPECT_EQ(say(lab, "1", "ls /sys/class/infiniband"), "roceP2p1s0f0\nroceP2p1s0f1\nrocep1s0f0\nrocep1s0f1");
  EXPECT_EQ(say(lab, "1", "cat /sys/bus/pci/devices/0002:01:00.0/current_link_width"), "4");
  EXPECT_NE(say(lab, "1", "cat /sys/class/dmi/id/product_name /etc/dgx-release").find("DGX_NAME=\"DGX Spark\""),
            std::string::npos);
  EXPECT_TRUE(
      comes_true([&] { return say(lab, "1", "cat /sys/class/infiniband/rocep1s0f0/ports/1/state") == "4: ACTIVE"; }));
  EXPECT_EQ(say(lab, "2", "cat /sys/class/infiniband/rocep1s0f0/ports/1/gids/3"),
            "0000:0000:0000:0000:0000:ffff:c0a8:6402");
  EXPECT_EQ(say(lab, "2", "cat /sys/class/infiniband/rocep1s0f1/ports/1/state"), "1: DOWN");
  EXPECT_EQ(say(lab, "1", "awk '/MemTotal/ {print $2}' /proc/meminfo"), "262144");
  EXPECT_TRUE(
      comes_true([&] { return say(lab, "1", "awk '/MemAvailable/ {print ($2 < 262144)}' /proc/meminfo") == "1"; }));
}

TEST_F(Lab, EndsWhatTakesMoreMemoryThanTheNodeHas) {
  const TestLab lab({"--memory", "128MiB"});
  const std::string eat = "dd if=/dev/zero of=/dev/null bs=$1 count=1 2>/dev/null";
  EXPECT_TRUE(lab.exec("1", {"sh", "-c", eat, "sh", "32M"}).ok());
  const Outcome outcome = lab.exec("1", {"sh", "-c", eat, "sh", "400M"});
  EXPECT_FALSE(outcome.ok());
}

TEST_F(Lab, WritesAClusterFileWithTheRatesAsExpectations) {
  const TestLab lab({"--rail-rate", "500Mb/s", "--management-rate", "100Mb/s"});
  const spec::Cluster cluster = spec::load_cluster(lab.folder / "cluster.yaml");
  EXPECT_EQ(cluster.lab, lab.name);
  EXPECT_EQ(cluster.hardware, "spark");
  EXPECT_EQ(cluster.fabric->rail_rate, BitsPerSecond{500e6});
  EXPECT_EQ(cluster.fabric->management_rate, BitsPerSecond{100e6});
  ASSERT_EQ(cluster.nodes.size(), 2U);
  EXPECT_EQ(cluster.nodes[1].rails[1].interface, "enP2p1s0f0np0");
  EXPECT_EQ(to_string(cluster.nodes[1].rails[1].address), "192.168.101.2/24");
}

TEST_F(Lab, CommandsGivenItsClusterFileOrItsNameRunOnTheHeadNode) {
  const TestLab lab;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"cluster", "reach", "--json"}, {"cluster", "reach", "--json", "--lab", lab.name}}) {
    const Outcome outcome = lab.yoke(arguments);
    ASSERT_EQ(outcome.exit_status, 0) << outcome.err << outcome.out;
    const Document answer = parse_json(outcome.out, "out");
    EXPECT_EQ(answer.find("nodes")->items.at(1).find("hostname")->text, "spark-2");
  }
  EXPECT_EQ(lab.yoke({"cluster", "reach", "--lab", "no-such-lab"}).exit_status, 5);
  // There the program is carried by its hash and runs.
  const Outcome carried = lab.yoke({"cluster", "reach", "--copy", "--json"});
  ASSERT_EQ(carried.exit_status, 0) << carried.err << carried.out;
  EXPECT_NE(parse_json(carried.out, "out").find("nodes")->items.at(1).find("program"), nullptr);
}

TEST_F(Lab, BareLeavesTheFastInterfacesAsFromTheFactory) {
  const TestLab lab({"--unconfigured"});
  EXPECT_EQ(say(lab, "1", "ip -4 -brief addr show dev enp1s0f0np0 | grep -c 192 || true"), "0");
  EXPECT_EQ(say(lab, "1", "cat /proc/sys/net/ipv6/conf/enp1s0f0np0/disable_ipv6"), "0");
  EXPECT_NE(say(lab, "1", "ip link show dev enp1s0f0np0").find("mtu 1500"), std::string::npos);
  EXPECT_TRUE(spec::load_cluster(lab.folder / "cluster.yaml").nodes[0].rails.empty());
}

TEST_F(Lab, RunsSideBySideWithOthers) {
  const TestLab first;
  const TestLab second({"--nodes", "3", "--hardware", "none"});
  EXPECT_EQ(say(first, "2", "hostname"), "spark-2");
  EXPECT_EQ(say(second, "3", "hostname"), "node-3");
  // Without a name each folder means the lab of its own cluster file.
  EXPECT_EQ(first.yoke({"lab", "exec", "2", "--", "hostname"}).out, "spark-2\n");
  EXPECT_EQ(second.yoke({"lab", "exec", "3", "--", "hostname"}).out, "node-3\n");
  const Document labs = parse_json(first.yoke({"lab", "status", "--json"}).out, "out");
  EXPECT_GE(labs.find("labs")->items.size(), 2U);
}

TEST_F(Lab, StatusLeavesOutALabThatIsStartingOrEnding) {
  const TestLab lab;
  const fs::path half = "/run/yoke/labs/test-" + random_token_hex(4);
  fs::create_directory(half);
  const auto status = [&](const std::vector<std::string>& more) {
    const Outcome outcome = lab.yoke(joined({"lab", "status"}, more));
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string text = status({});
  EXPECT_NE(text.find("Lab '" + lab.name + "'"), std::string::npos) << text;
  EXPECT_EQ(text.find(half.filename().native()), std::string::npos) << text;
  // Its layout comes and goes while it is looked at.
  std::atomic<bool> ends = false;
  std::thread changes([&] {
    while (!ends) {
      std::error_code ignored;
      fs::copy_file("/run/yoke/labs/" + lab.name + "/lab.json", half / "new", ignored);
      fs::rename(half / "new", half / "lab.json", ignored);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      fs::remove(half / "lab.json", ignored);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int i = 0; i < 20; ++i) status({"--json"});
  ends = true;
  changes.join();
  fs::remove_all(half);
}

TEST_F(Lab, OfServersHasEightRails) {
  const TestLab lab({"--hardware", "b300"});
  EXPECT_EQ(say(lab, "1", "ip -4 -brief addr | grep -c ' 192.168.'"), "8");
  EXPECT_TRUE(lab.exec("1", {"ping", "-c1", "-W2", "192.168.107.2"}).ok());
}

TEST_F(Lab, IsGoneAfterDownAndSaysSoWhenAskedAgain) {
  TestLab lab;
  // A program of a node that made a group of its own, and was killed.
  const std::string group = run({.argv = {"find", "/sys/fs/cgroup", "-name", "yoke-lab-" + lab.name + "-node-1"}}).out;
  if (!group.empty()) fs::create_directory(fs::path(trim(group)) / "left");
  EXPECT_EQ(lab.yoke({"lab", "down", "--name", lab.name}).exit_status, 0);
  const Outcome again = lab.yoke({"lab", "down", "--name", lab.name});
  EXPECT_EQ(again.exit_status, 5);
  EXPECT_NE(again.err.find("lab '" + lab.name + "' is not running"), std::string::npos) << again.err;
  EXPECT_FALSE(fs::exists("/run/yoke/labs/" + lab.name));
  EXPECT_FALSE(fs::exists("/run/yoke/labs/" + lab.name + ".lock"));
  EXPECT_EQ(run({.argv = {"sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c \"labs/$0 [0-9]\"",
                          lab.name}})
                .out,
            "0\n");
  EXPECT_EQ(run({.argv = {"find", "/sys/fs/cgroup", "-name", "yoke-lab-" + lab.name + "-*"}}).out, "");
}

TEST_F(Lab, PassesOnExitStatusesArgumentsAndStreams) {
  const TestLab lab;
  EXPECT_EQ(lab.exec("1", {"sh", "-c", "exit 7"}).exit_status, 7);
  EXPECT_EQ(lab.exec("1", {"sh", "-c", "kill -9 $$"}).exit_status, 137);
  EXPECT_EQ(lab.exec("1", {"no-such-program"}).exit_status, 127);
  EXPECT_EQ(lab.exec("1", {"printf", "%s|", "a b", "--json", ""}).out, "a b|--json||");
  EXPECT_EQ(run_yoke(lab.exec_arguments("1", {"cat"}), {.input = "hello"}).out, "hello");
  EXPECT_EQ(lab.exec("9", {"true"}).exit_status, 5);
}

class LabMistakes : public testing::TestWithParam<Mistake> {};
TEST_P(LabMistakes, GetOneClearErrorAndLeaveNothing) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const ScratchDir scratch;
  const Outcome outcome = run_yoke(GetParam().arguments, {.folder = scratch.path()});
  expect_clear_error(outcome, GetParam());
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}
INSTANTIATE_TEST_SUITE_P(
    Lines, LabMistakes,
    testing::Values(
        Mistake{"Slash", {"lab", "up", "--name", "a/b"}, 2, "'a/b' cannot be a lab's name", "hint: "},
        Mistake{"NamedForOtherCommands", {"lab", "up", "--lab", "a/b"}, 2, "'a/b' cannot be a lab's name", "hint: "},
        Mistake{"TwoNames",
                {"lab", "up", "--lab", "a", "--name", "b"},
                2,
                "--name and --lab name different labs",
                "hint: "},
        Mistake{"DotDot", {"lab", "down", "--name", ".."}, 2, "'..' cannot be a lab's name", "hint: "},
        Mistake{"NoNodes", {"lab", "up", "--nodes", "0"}, 2, "a lab has 2 to 8 nodes, not 0", "hint: "},
        Mistake{"OneNode", {"lab", "up", "--nodes", "1"}, 2, "not 1", "hint: "},
        Mistake{"TooManyNodes", {"lab", "up", "--nodes", "99"}, 2, "not 99", "hint: "},
        Mistake{"ZeroRate", {"lab", "up", "--rail-rate", "0Gb/s"}, 2, "a rate of at least 1Mb/s", "hint: "},
        Mistake{
            "ByteRate", {"lab", "up", "--rail-rate", "2GB/s"}, 2, "'2GB/s' is not a rate in bits per second", "hint: "},
        Mistake{"OneByte", {"lab", "up", "--memory", "1B"}, 2, "a node cannot live with 1 B of memory", "hint: "},
        Mistake{"NoUnit", {"lab", "up", "--memory", "512"}, 2, "'512' is not a size", "hint: "},
        Mistake{"RingOfTwo", {"lab", "up", "--topology", "ring"}, 2, "a ring has at least three nodes", "hint: "},
        Mistake{"DirectThree",
                {"lab", "up", "--nodes", "3", "--topology", "direct"},
                2,
                "cannot be cabled directly",
                "hint: "},
        Mistake{"Topology", {"lab", "up", "--topology", "star"}, 2, "--topology cannot be 'star'", "hint: "},
        Mistake{"Hardware", {"lab", "up", "--hardware", "gpu"}, 2, "--hardware cannot be 'gpu'", "hint: "},
        Mistake{"NeverWas", {"lab", "down", "--name", "never-was"}, 5, "lab 'never-was' is not running", "hint: "},
        Mistake{"NoFolder",
                {"lab", "up", "--name", "test-nofolder", "--cluster-file", "no/such/c.yaml"},
                5,
                "cannot write no/such/c.yaml",
                "hint: "}),
    [](const auto& test) { return test.param.name; });

TEST_F(Lab, ASecondOneOfTheSameNameIsRefusedAndNobodysClusterFileIsOverwritten) {
  const TestLab lab;
  const Outcome again = lab.yoke({"lab", "up", "--name", lab.name});
  EXPECT_EQ(again.exit_status, 10);
  EXPECT_NE(again.err.find("already"), std::string::npos) << again.err;
  EXPECT_EQ(say(lab, "1", "hostname"), "spark-1");
  const ScratchDir other;
  write_file_atomically(other.path() / "cluster.yaml", "name: mine\nnodes: [{ name: a, address: b }]\n");
  const Outcome refused = run_yoke({"lab", "up", "--name", "test-other"}, {.folder = other.path()});
  EXPECT_EQ(refused.exit_status, 10);
  EXPECT_NE(refused.err.find("--cluster-file"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(other.path() / "cluster.yaml"), "name: mine\nnodes: [{ name: a, address: b }]\n");
}

// ---- faults: the effect of each, and that clearing restores what was there.

// All of a node that a fault may change.
std::string snapshot(const TestLab& lab, const std::string& node) {
  return say(
      lab, node,
      "ip -brief addr; ip route; ip -o link | sed 's/qdisc.*//'; tc qdisc | sed 's/qdisc \\([a-z]*\\) [^ ]*/\\1/';"
      "cd /sys/class/infiniband; grep -r . */ports/1/state */ports/1/rate */ports/1/gids */ports/1/gid_attrs;"
      "grep . /sys/bus/pci/devices/*/current_link_width; nft list ruleset");
}

// One packet, answered within a second.
bool ping(const TestLab& lab, const std::string& address, const std::string& size = "56") {
  return lab.exec("1", {"ping", "-c1", "-W1", "-M", "do", "-s", size, address}).ok();
}

struct Fault {
  const char* name;
  std::vector<std::string> options;
  std::function<bool(const TestLab&)> effect;  // seen once the fault is made on node 2
};

class EachLabFault : public testing::TestWithParam<Fault> {};
TEST_P(EachLabFault, HasItsEffectAndIsUndoneExactly) {
  if (const auto why = why_no_labs({"nft"})) GTEST_SKIP() << *why;
  const TestLab lab;
  ASSERT_TRUE(comes_true([&] { return snapshot(lab, "2").find("c0a8:6502") != std::string::npos; }));
  const std::string before_1 = snapshot(lab, "1");
  const std::string before_2 = snapshot(lab, "2");
  EXPECT_FALSE(GetParam().effect(lab));
  std::vector<std::string> arguments = {"lab", "fault", "--name", lab.name, GetParam().name, "--node", "2"};
  arguments.insert(arguments.end(), GetParam().options.begin(), GetParam().options.end());
  const Outcome made = lab.yoke(arguments);
  ASSERT_EQ(made.exit_status, 0) << made.err;
  EXPECT_TRUE(comes_true([&] { return GetParam().effect(lab); }));
  EXPECT_EQ(lab.yoke(arguments).exit_status, 10) << "a fault in force cannot be made again";
  const Outcome cleared = lab.yoke({"lab", "fault", "--name", lab.name, "clear"});
  ASSERT_EQ(cleared.exit_status, 0) << cleared.err;
  EXPECT_TRUE(comes_true([&] { return snapshot(lab, "1") == before_1 && snapshot(lab, "2") == before_2; }))
      << before_2 << "\n---- became ----\n"
      << snapshot(lab, "2");
  EXPECT_FALSE(GetParam().effect(lab));
}

bool file_has(const TestLab& lab, const std::string& file, const std::string& text) {
  return say(lab, "2", "cat /sys/class/infiniband/" + file).find(text) != std::string::npos;
}
bool connects(const TestLab& lab, const std::string& address) {
  return lab.exec("1", {"bash", "-c", "exec 3<>/dev/tcp/" + address + "/22"}, 3_s).ok();
}

INSTANTIATE_TEST_SUITE_P(
    All, EachLabFault,
    testing::Values(
        Fault{"cable-pulled",
              {},
              [](const TestLab& lab) {
                return !ping(lab, "192.168.100.2") && !ping(lab, "192.168.101.2") && ping(lab, "10.77.0.2") &&
                       say(lab, "1", "ip link show dev enp1s0f0np0").find("NO-CARRIER") != std::string::npos;
              }},
        Fault{"rail-down",
              {"--rail", "A"},
              [](const TestLab& lab) {
                return !ping(lab, "192.168.100.2") && ping(lab, "192.168.101.2") &&
                       file_has(lab, "rocep1s0f0/ports/1/state", "1: DOWN") &&
                       file_has(lab, "roceP2p1s0f0/ports/1/state", "4: ACTIVE");
              }},
        Fault{"rail-unaddressed",
              {"--rail", "B"},
              [](const TestLab& lab) {
                return !ping(lab, "192.168.101.2") && ping(lab, "192.168.100.2") &&
                       file_has(lab, "roceP2p1s0f0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000");
              }},
        Fault{"mtu-mismatch",
              {"--rail", "A"},
              [](const TestLab& lab) {
                return ping(lab, "192.168.100.2") && !ping(lab, "192.168.100.2", "8972") &&
                       ping(lab, "192.168.101.2", "8972");
              }},
        Fault{"same-subnet",
              {},
              [](const TestLab& lab) { return say(lab, "2", "ip route | grep -c '^192.168.100.0/24'") == "2"; }},
        Fault{"slow-rail",
              {"--rail", "B"},
              [](const TestLab& lab) {
                return say(lab, "2", "tc qdisc show dev enP2p1s0f0np0").find("rate 250Mbit") != std::string::npos &&
                       say(lab, "1", "tc qdisc show dev enP2p1s0f0np0").find("rate 250Mbit") != std::string::npos;
              }},
        Fault{"gid-drift",
              {"--rail", "A"},
              [](const TestLab& lab) {
                return !file_has(lab, "rocep1s0f0/ports/1/gids/3", "c0a8:6402") &&
                       say(lab, "2", "grep -l c0a8:6402 /sys/class/infiniband/rocep1s0f0/ports/1/gids/* | wc -l") ==
                           "2";
              }},
        Fault{"narrow-pcie",
              {"--rail", "B"},
              [](const TestLab& lab) {
                return say(lab, "2", "cat /sys/bus/pci/devices/0002:01:00.0/current_link_width") == "2";
              }},
        Fault{"management-only",
              {},
              [](const TestLab& lab) {
                return say(lab, "2", "ip route get 192.168.100.1").find("enP7s7") != std::string::npos &&
                       ping(lab, "192.168.100.2");
              }},
        Fault{"port-speed-100",
              {},
              [](const TestLab& lab) { return file_has(lab, "rocep1s0f0/ports/1/rate", "100 Gb/sec"); }},
        Fault{"firewall",
              {},
              [](const TestLab& lab) {
                lab.exec("2", {"sh", "-c",
                               "test -e /tmp/p || /usr/sbin/sshd -o port=2201 -o pidfile=/tmp/p "
                               "-f /etc/ssh/yoke_sshd_config"});
                const bool data = lab.exec("1", {"bash", "-c", "exec 3<>/dev/tcp/192.168.100.2/2201"}, 3_s).ok();
                return !data && connects(lab, "192.168.100.2") && ping(lab, "192.168.100.2");
              }}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST_F(LabFaults, PowerOffIsADeadNodeWithoutCarrierAndPowerOnBringsItBack) {
  const TestLab lab;
  const Outcome off = lab.yoke({"lab", "fault", "--name", lab.name, "power-off", "--node", "2"});
  ASSERT_EQ(off.exit_status, 0) << off.err;
  EXPECT_FALSE(ping(lab, "10.77.0.2"));
  EXPECT_NE(say(lab, "1", "ip link show dev enp1s0f0np0").find("NO-CARRIER"), std::string::npos);
  const Outcome dead = lab.exec("2", {"true"});
  EXPECT_EQ(dead.exit_status, 7);
  EXPECT_NE(dead.err.find("spark-2 is powered off"), std::string::npos) << dead.err;
  // A fault made before stays through the power cycle.
  EXPECT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "rail-down", "--node", "2", "--rail", "A"}).exit_status, 0);
  ASSERT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "power-on", "--node", "2"}).exit_status, 0);
  EXPECT_EQ(lab.exec("1", {"ssh", "spark-2", "hostname"}).out, "spark-2\n");
  EXPECT_FALSE(ping(lab, "192.168.100.2"));
  EXPECT_TRUE(comes_true([&] { return ping(lab, "192.168.101.2"); }));
  ASSERT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "clear"}).exit_status, 0);
  EXPECT_TRUE(comes_true([&] { return ping(lab, "192.168.100.2"); }));
}

TEST_F(LabFaults, UnshapedRailsHaveNoQueueThatShapesAndCannotBeSlowed) {
  const TestLab lab({"--rail-rate", "none"});
  EXPECT_EQ(say(lab, "1", "tc qdisc show dev enp1s0f0np0").find("tbf"), std::string::npos);
  EXPECT_FALSE(spec::load_cluster(lab.folder / "cluster.yaml").fabric->rail_rate);
  const Outcome slow = lab.yoke({"lab", "fault", "--name", lab.name, "slow-rail", "--node", "1", "--rail", "A"});
  EXPECT_EQ(slow.exit_status, 11);
  EXPECT_NE(slow.err.find("start it without --rail-rate none"), std::string::npos) << slow.err;
  EXPECT_NE(lab.yoke({"lab", "status", "--name", lab.name}).out.find("rails unshaped"), std::string::npos);
}

TEST_F(LabFaults, WhatCannotBeHadOrIsNotKnownIsSaid) {
  const TestLab lab;
  const Outcome skew = lab.yoke({"lab", "fault", "--name", lab.name, "clock-skew", "--node", "1"});
  EXPECT_EQ(skew.exit_status, 11);
  EXPECT_NE(skew.err.find("a lab cannot skew a clock"), std::string::npos) << skew.err;
  EXPECT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "rail-dwon", "--node", "1"}).exit_status, 2);
  EXPECT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "rail-down"}).exit_status, 2);
  EXPECT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "rail-down", "--node", "7"}).exit_status, 5);
  EXPECT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "rail-down", "--node", "1", "--rail", "C"}).exit_status, 2);
  EXPECT_NE(lab.yoke({"lab", "fault"}).out.find("slow-rail"), std::string::npos);
}

}  // namespace
}  // namespace yoke::tests
