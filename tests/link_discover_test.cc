// yoke link discover in labs: real frames on real interfaces, ssh with host keys, and the cluster file that follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/check_findings.h"
#include "tests/mistake.h"
#include "yoke/base/clock.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/lab/layout.h"
#include "yoke/spec/cluster.h"

namespace yoke::tests {
namespace {

using namespace literals;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

struct LinkDiscover : testing::Test {
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  }
};
struct LabTimingLinkDiscover : LinkDiscover {};

Document json_of(const Outcome& outcome) { return parse_json(outcome.out, "out"); }

std::vector<std::string> rules(const Document& discovery) {
  std::vector<std::string> names;
  for (const Document& finding : discovery.find("findings")->items) {
    const Document* node = finding.find("node");
    names.push_back(finding.find("rule")->text + ":" + (node ? node->text : "all"));
  }
  return names;
}

// On the head node, as a user there would: the lab's own cluster file is not looked at.
Outcome discover_there(const TestLab& lab, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"yoke", "link", "discover"});
  return lab.exec("1", arguments);
}

// What runs on in a node; it ends with this.
Process start_there(const TestLab& lab, const std::string& node, const std::vector<std::string>& argv) {
  std::vector<std::string> all = lab.exec_arguments(node, argv);
  all.insert(all.begin(), YOKE_PROGRAM);
  return Process({.argv = all, .folder = lab.folder});
}

Document addresses_of(const TestLab& lab, const std::string& node) {
  return parse_json(lab.exec(node, {"ip", "-json", "-4", "address"}).out, "ip");
}

TEST_F(LinkDiscover, APairGivesTheLabsOwnClusterFileByteForByte) {
  const TestLab lab;
  const std::string own = read_file(lab.folder / "cluster.yaml");
  const Outcome outcome = lab.yoke({"link", "discover", "-o", "found.yaml"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Topology: a cable between two nodes, as beacons show."));
  EXPECT_THAT(outcome.out, EndsWith("The cluster file is found.yaml.\nNext: yoke link setup --cluster found.yaml\n"));
  EXPECT_EQ(read_file(lab.folder / "found.yaml"), own);
}

TEST_F(LinkDiscover, AFileThatIsThereIsReplacedOnlyWhenAsked) {
  const TestLab lab;
  write_file_atomically(lab.folder / "mine.yaml", "mine\n");
  const Outcome refused = lab.yoke({"link", "discover", "-o", "mine.yaml"});
  EXPECT_EQ(refused.exit_status, 10) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("'mine.yaml' is there already"));
  EXPECT_THAT(refused.err, HasSubstr("--force replaces it"));
  EXPECT_EQ(read_file(lab.folder / "mine.yaml"), "mine\n");
  EXPECT_EQ(lab.yoke({"link", "discover", "-o", "mine.yaml", "--force", "--json"}).exit_status, 0);
  EXPECT_EQ(spec::load_cluster(lab.folder / "mine.yaml").nodes.size(), 2U);
}

TEST_F(LinkDiscover, ThreeInARingAreFoundFromTheirAddresses) {
  const TestLab lab({"--nodes", "3", "--topology", "ring"});
  // Not in the order of the ring's cables, which decide.
  const Outcome outcome = discover_there(lab, {"10.77.0.1", "root@10.77.0.3", "10.77.0.2", "--user", "root", "--json"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.out << outcome.err;
  const spec::Cluster own = spec::load_cluster(lab.folder / "cluster.yaml");
  const spec::Cluster found = from_json<spec::Cluster>(*json_of(outcome).find("cluster"));
  EXPECT_EQ(found.nodes, own.nodes);
  EXPECT_EQ(found.hardware, own.hardware);
  EXPECT_EQ(found.fabric->topology, spec::Topology::kRing);
  EXPECT_EQ(found.fabric->subnets, own.fabric->subnets);
  EXPECT_EQ(found.fabric->mtu, 9000);
  EXPECT_THAT(rules(json_of(outcome)), IsEmpty());
  EXPECT_EQ(json_of(outcome).find("segments")->items.size(), 6U);
}

TEST_F(LabTimingLinkDiscover, FourAtASwitchAreFoundInUnderTenSeconds) {
  const TestLab lab({"--nodes", "4", "--topology", "switch"});
  const Instant start = real_clock().now();
  const Outcome outcome = lab.yoke({"link", "discover", "-o", "found.yaml", "--json"});
  const Seconds took = to_seconds(real_clock().now() - start);
  ASSERT_EQ(outcome.exit_status, 0) << outcome.out << outcome.err;
  EXPECT_LT(took.value, 10);
  EXPECT_EQ(read_file(lab.folder / "found.yaml"), read_file(lab.folder / "cluster.yaml"));
  EXPECT_THAT(rules(json_of(outcome)), IsEmpty());
  RecordProperty("seconds", std::to_string(took.value));
}

TEST_F(LinkDiscover, FourAsFromTheFactoryGetThePlanThatTheLabWouldHaveMade) {
  const TestLab lab({"--nodes", "4", "--topology", "ring", "--unconfigured"});
  const Outcome outcome = lab.yoke({"link", "discover", "--json"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  const spec::Cluster expected =
      lab::lab_cluster(lab::lay_out_lab({.name = lab.name, .nodes = 4, .topology = spec::Topology::kRing}));
  EXPECT_EQ(spec::print_cluster(from_json<spec::Cluster>(*json_of(outcome).find("cluster"))),
            spec::print_cluster(expected));
  EXPECT_EQ(json_of(outcome).find("adopted")->text, "false");
}

TEST_F(LinkDiscover, WithoutAnyAddressBeaconsProposeAndSshConfirms) {
  const TestLab lab({"--nodes", "4", "--topology", "ring", "--unconfigured"});
  std::vector<Process> announcers;
  for (const char* node : {"2", "3", "4"}) {
    announcers.push_back(start_there(lab, node, {"yoke", "link", "discover", "--announce"}));
  }
  for (Process& announcer : announcers) {
    const auto line = announcer.read_line(Deadline::after(20_s));
    ASSERT_TRUE(line && line->text.find("announces itself for 600 s on enp1s0f0np0") != std::string::npos)
        << (line ? line->text : "nothing");
  }
  const Outcome outcome = discover_there(lab, {"--json", "--name", "desk"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  const spec::Cluster found = from_json<spec::Cluster>(*json_of(outcome).find("cluster"));
  EXPECT_EQ(found.name, "desk");
  ASSERT_EQ(found.nodes.size(), 4U);  // the one across the ring is heard by its neighbours only
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(found.nodes[i].name, fmt::format("spark-{}", i + 1));
  EXPECT_EQ(found.fabric->topology, spec::Topology::kRing);
}

TEST_F(LinkDiscover, ABeaconWithoutATrustedHostKeyStaysOut) {
  const TestLab lab;
  ASSERT_TRUE(lab.exec("1", {"sh", "-c", "> /root/.ssh/known_hosts"}).ok());
  Process announcer = start_there(lab, "2", {"yoke", "link", "discover", "--announce"});
  ASSERT_TRUE(announcer.read_line(Deadline::after(20_s)));
  const Outcome outcome = discover_there(lab, {});
  EXPECT_EQ(outcome.exit_status, 7) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("spark-2 is on the cable, but ssh does not confirm it"));
  EXPECT_THAT(outcome.err, HasSubstr("host key"));
}

TEST_F(LinkDiscover, ACutRailIsReportedForItsNodeAndTheRestIsFound) {
  const TestLab lab;
  ASSERT_TRUE(lab.yoke({"lab", "fault", "rail-down", "--name", lab.name, "--node", "2", "--rail", "B"}).ok());
  const Outcome outcome = lab.yoke({"link", "discover", "--json"});
  ASSERT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(rules(json_of(outcome)), testing::ElementsAre("rail-down:spark-2"));
  EXPECT_EQ(json_of(outcome).find("topology")->text, "direct");
  EXPECT_EQ(json_of(outcome).find("segments")->items.size(), 1U);
}

TEST_F(LinkDiscover, ASilentNodeIsNamedAndNoFileIsWritten) {
  const TestLab lab({"--nodes", "3", "--topology", "switch"});
  ASSERT_TRUE(lab.exec("3", {"sh", "-c", "ip link set enp1s0f0np0 down; ip link set enP2p1s0f0np0 down"}).ok());
  const Outcome outcome = lab.yoke({"link", "discover", "--json", "-o", "found.yaml"});
  ASSERT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(rules(json_of(outcome)), Contains("node-silent:spark-3"));
  EXPECT_FALSE(std::filesystem::exists(lab.folder / "found.yaml"));
}

TEST_F(LinkDiscover, WithoutTheRightToRawSocketsAddressesShowTheCabling) {
  if (!find_program("setpriv")) GTEST_SKIP() << "setpriv is not installed";
  const TestLab lab;
  const Outcome outcome =
      lab.exec("1", {"setpriv", "--bounding-set=-net_raw", "yoke", "link", "discover", "10.77.0.1", "10.77.0.2"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("inferred from addresses and LLDP: beacons could not be sent"));
  EXPECT_THAT(outcome.out, HasSubstr("topology: direct"));
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "ip addr flush dev enp1s0f0np0; ip addr flush dev enP2p1s0f0np0"}).ok());
  const Outcome nothing =
      lab.exec("1", {"setpriv", "--bounding-set=-net_raw", "yoke", "link", "discover", "10.77.0.1", "10.77.0.2"});
  EXPECT_EQ(nothing.exit_status, 6) << nothing.out;
  EXPECT_THAT(nothing.err, HasSubstr("spark-1 cannot send beacons"));
}

TEST_F(LinkDiscover, WithoutAnyAddressAndWithoutRawSocketsLldpShowsTheCabling) {
  if (const auto why = why_no_labs({"setpriv", "lldpd", "lldpcli"})) GTEST_SKIP() << *why;
  const TestLab lab({"--unconfigured"});
  std::vector<Process> daemons;
  for (const char* node : {"1", "2"}) {
    daemons.push_back(start_there(lab, node, {"sh", "-c", "mkdir -p /run/lldpd; exec lldpd -d -I 'en*np*'"}));
  }
  // Until each node knows the other on both of its rails.
  const auto knows_both = [&](const char* node) {
    const std::string known = lab.exec(node, {"lldpcli", "-f", "keyvalue", "show", "neighbors"}).out;
    return known.find("enp1s0f0np0.chassis.name=") != std::string::npos &&
           known.find("enP2p1s0f0np0.chassis.name=") != std::string::npos;
  };
  const Deadline deadline = Deadline::after(60_s);
  while (!(knows_both("1") && knows_both("2"))) {
    ASSERT_FALSE(deadline.expired()) << lab.exec("1", {"lldpcli", "show", "neighbors"}).describe()
                                     << lab.exec("2", {"lldpcli", "show", "neighbors"}).describe();
    // It sends at its start, every second for a while when it meets a neighbour, and else every 30 s. Asking it to send
    // ('lldpcli update') puts that off each time.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const Outcome outcome = lab.exec(
      "1", {"setpriv", "--bounding-set=-net_raw", "yoke", "link", "discover", "10.77.0.1", "10.77.0.2", "--json"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(json_of(outcome).find("source")->text, "addresses");
  EXPECT_EQ(json_of(outcome).find("segments")->items.size(), 2U);
}

// What others' tools leave, made by hand on the factory's state; what is there stays there.
struct Foreign {
  const char* name;
  std::vector<std::string> scripts;  // one for each node
  const char* set_up_by;
  std::vector<std::string> rules;
  std::string check;  // what 'yoke check' tells of it: what is true and costs something
};
class LinkDiscoverForeign : public LinkDiscover, public testing::WithParamInterface<Foreign> {};

TEST_P(LinkDiscoverForeign, IsAdoptedAsItIs) {
  const TestLab lab({"--unconfigured"});
  for (std::size_t i = 0; i < GetParam().scripts.size(); ++i) {
    const Outcome outcome = lab.exec(std::to_string(i + 1), {"sh", "-ec", GetParam().scripts[i]});
    ASSERT_TRUE(outcome.ok()) << outcome.describe();
  }
  const Document before = addresses_of(lab, "2");
  const Outcome outcome = lab.yoke({"link", "discover", "--json", "-o", "found.yaml"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err << outcome.out;  // advice is no failure
  const Document found = json_of(outcome);
  EXPECT_EQ(found.find("set_up_by")->text, GetParam().set_up_by);
  EXPECT_EQ(found.find("adopted")->text, "true");
  EXPECT_EQ(rules(found), GetParam().rules);
  const spec::Cluster cluster = from_json<spec::Cluster>(*found.find("cluster"));
  EXPECT_EQ(cluster.fabric->mtu, 9000) << "what is wanted, not what was found";
  EXPECT_EQ(addresses_of(lab, "2"), before);
  EXPECT_EQ(findings_in(lab.yoke({"check", "--no-measure", "--json", "--cluster", "found.yaml"})), GetParam().check);
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, LinkDiscoverForeign,
    testing::Values(
        Foreign{"NvidiasPlaybook",
                {"ip addr add 192.168.100.10/24 dev enp1s0f0np0; ip addr add 192.168.101.10/24 dev enP2p1s0f0np0",
                 "ip addr add 192.168.100.11/24 dev enp1s0f0np0; ip addr add 192.168.101.11/24 dev enP2p1s0f0np0"},
                "NVIDIA's two-Spark playbook",
                {"mtu-small:spark-1", "mtu-small:spark-2"},
                "mtu-small spark-1 enp1s0f0np0, enP2p1s0f0np0\nmtu-small spark-2 enp1s0f0np0, enP2p1s0f0np0\n"},
        Foreign{"NvidiasScript",
                {"ip addr add 192.168.0.1/24 dev enp1s0f0np0; ip addr add 192.168.0.2/24 dev enP2p1s0f0np0",
                 "ip addr add 192.168.0.3/24 dev enp1s0f0np0; ip addr add 192.168.0.4/24 dev enP2p1s0f0np0"},
                "NVIDIA's cluster script",
                {"subnet-shared:spark-1", "subnet-shared:spark-2", "mtu-small:spark-1", "mtu-small:spark-2"},
                "subnet-shared spark-1 enP2p1s0f0np0\nsubnet-shared spark-2 enP2p1s0f0np0\n"
                "mtu-small spark-1 enp1s0f0np0, enP2p1s0f0np0\nmtu-small spark-2 enp1s0f0np0, enP2p1s0f0np0\n"},
        Foreign{"NvidiasLinkLocal",
                {"ip addr add 169.254.35.62/16 scope link dev enp1s0f0np0",
                 "ip addr add 169.254.7.9/16 scope link dev enp1s0f0np0"},
                "NVIDIA's netplan file for link-local addresses",
                {"rail-unaddressed:spark-1", "rail-unaddressed:spark-2", "link-local-addresses:all",
                 "mtu-small:spark-1", "mtu-small:spark-2"},
                "rail-unlisted spark-1 enP2p1s0f0np0\nrail-unlisted spark-2 enP2p1s0f0np0\n"
                "mtu-small spark-1 enp1s0f0np0\nmtu-small spark-2 enp1s0f0np0\n"}),
    [](const auto& test) { return test.param.name; });

TEST_F(LinkDiscover, MistakesGetOneClearErrorWithAHint) {
  const TestLab lab;
  for (const Mistake& mistake : std::vector<Mistake>{
           {"Twice", {"10.77.0.2", "10.77.0.2"}, 2, "10.77.0.2 is given twice", "each machine once"},
           {"SameMachine",
            {"10.77.0.1", "spark-1"},
            2,
            "are the same machine, spark-1",
            "one address for each machine"},
           {"FastAddress",
            {"10.77.0.1", "192.168.100.2"},
            2,
            "is on the fast interface enp1s0f0np0 of spark-2",
            "10.77.0.2"},
           {"OneMachine", {"10.77.0.1"}, 2, "one machine is no cluster", "name the others too"},
           {"Commas", {"10.77.0.1,10.77.0.2"}, 2, "is no address", "with spaces between"},
           {"SecondsNoNumber", {"10.77.0.1", "10.77.0.2", "--seconds", "soon"}, 2, "--seconds", "--seconds 3"},
           {"SecondsZero", {"10.77.0.1", "10.77.0.2", "--seconds", "0"}, 2, "--seconds cannot be 0", "3 is usual"},
           {"NoHost", {"10.77.0.1", "@10.77.0.2"}, 2, "'@10.77.0.2' is no address", "with spaces between"},
           {"BadName",
            {"10.77.0.1", "10.77.0.2", "--name", "my desk"},
            2,
            "'my desk' cannot be a cluster's name",
            "letters"},
           {"ForceAlone", {"10.77.0.1", "10.77.0.2", "--force"}, 2, "--force without -o", "-o cluster.yaml"},
           {"AFolder", {"10.77.0.1", "10.77.0.2", "-o", "/etc"}, 2, "'/etc' is a folder", "name a file"},
           {"AnnounceAndPlaces", {"--announce", "10.77.0.2"}, 2, "--announce takes neither", "another"},
           {"UnknownHost", {"10.77.0.1", "no-such-host"}, 7, "no-such-host", ""},
           {"UnknownUser", {"10.77.0.1", "10.77.0.2", "--user", "nobody-here"}, 6, "10.77.0.2", ""},
           {"NobodyAnnounces", {"--seconds", "1"}, 7, "no beacon was heard", "--announce"}}) {
    const Outcome outcome = discover_there(lab, mistake.arguments);
    SCOPED_TRACE(mistake.name);
    expect_clear_error(outcome, mistake);
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace yoke::tests
