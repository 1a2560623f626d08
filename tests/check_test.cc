// yoke check, as a person or a script meets it: on captures, on logs, and in a lab with each of its faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/check_findings.h"
#include "yoke/base/clock.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/check/rule.h"
#include "yoke/spec/measurement.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

Outcome check_captures(const std::vector<std::string>& machines, std::vector<std::string> more = {"--json"}) {
  std::vector<std::string> arguments = {"check"};
  for (const std::string& machine : machines) {
    arguments.insert(arguments.end(), {"--root", (kSourceFolder / "tests/fixtures" / machine).native()});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_yoke(arguments, {.folder = "/"});
}

struct Capture {
  std::vector<std::string> machines;
  std::string findings;
};
void PrintTo(const Capture& capture, std::ostream* out) { *out << capture.machines.front(); }

class CheckCaptures : public testing::TestWithParam<Capture> {};
TEST_P(CheckCaptures, GiveTheirFaultAndNoOther) {
  const Outcome outcome = check_captures(GetParam().machines);
  EXPECT_EQ(findings_in(outcome), GetParam().findings);
  EXPECT_EQ(outcome.exit_status, GetParam().findings.empty() ? 3 : 1);  // captures are never measured
}
INSTANTIATE_TEST_SUITE_P(
    Fixtures, CheckCaptures,
    testing::Values(
        Capture{{"spark-pair", "spark-pair-2"}, ""}, Capture{{"spark-pair"}, ""}, Capture{{"spark-ring"}, ""},
        Capture{{"b300"}, ""}, Capture{{"laptop"}, ""}, Capture{{"dell-pro-max-gb10"}, ""}, Capture{{"asus-gx10"}, ""},
        Capture{{"hp-zgx-nano"}, ""}, Capture{{"nixos-names"}, ""}, Capture{{"gid-drift", "spark-pair-2"}, ""},
        Capture{{"rail-down", "spark-pair-2"}, "rail-down spark-1 enp1s0f0np0\n"},
        Capture{{"rail-unaddressed", "spark-pair-2"}, "rail-unaddressed spark-1 enP2p1s0f0np0\n"},
        Capture{{"link-local"}, "rail-unaddressed spark-1 enP2p1s0f0np0\n"},
        Capture{{"mtu-1500"}, "mtu-small spark-1 enp1s0f0np0, enP2p1s0f0np0\n"},
        Capture{{"mtu-1500", "spark-pair-2"}, "mtu-differs spark-1 enp1s0f0np0\nmtu-differs spark-1 enP2p1s0f0np0\n"},
        Capture{{"same-subnet", "spark-pair-2"}, "subnet-shared spark-1 enP2p1s0f0np0\n"},
        Capture{{"narrow-pcie", "spark-pair-2"}, "pcie-narrow spark-1 enP2p1s0f0np0\n"},
        Capture{{"port-speed-100", "spark-pair-2"}, "port-slow spark-1 enp1s0f0np0\n"},
        Capture{{"nvlink-dead"}, "gpu-off-nvlink b300-1 GPU2\n"}, Capture{{"nic-missing"}, "nic-far b300-1 GPU7\n"},
        Capture{{"h100"}, ""}, Capture{{"b300-busy"}, ""}, Capture{{"b300-container"}, ""},
        Capture{{"gpu-lost"}, "gpu-missing b300-1 GPU\n"}, Capture{{"nvlink-16"}, "nvlink-missing b300-1 GPU5\n"},
        Capture{{"gpu-hot"}, "gpu-throttled b300-1 GPU 3\n"}, Capture{{"gpu-held"}, "gpu-memory-held b300-1 GPU 6\n"},
        Capture{{"nic-pinned"}, "pin-some-rails b300-1 NCCL_IB_HCA\n"},
        Capture{{"nic-pauses"}, "rail-pauses b300-1 enp58s0np0\n"},
        Capture{{"gpudirect-off"}, "gpudirect-missing b300-1 GPUDirect RDMA\n"},
        Capture{{"driver-570"}, "driver-old b300-1 -\n"},
        Capture{{"fabric-manager-off"}, "fabric-manager b300-1 -\n"}));

TEST(Check, ReportsWhatEvidenceCostAndFix) {
  const Outcome outcome = check_captures({"narrow-pcie"}, {});
  EXPECT_EQ(outcome.exit_status, 1);
  for (const char* text : {"warning pcie-narrow: spark-1, enP2p1s0f0np0", "what   ", "evidence   32 GT/s x2 now",
                           "costs  ", "fix  ", "1 finding: 0 errors, 1 warning."}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
  }
  EXPECT_THAT(check_captures({"spark-pair"}, {}).out, HasSubstr("Clean: "));
}

TEST(Check, APageForAForumIsShortAndHoldsNoSecrets) {
  const Outcome outcome = check_captures({"narrow-pcie", "spark-pair-2"}, {"--paste"});
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_LT(split(outcome.out, '\n').size(), 60U);
  EXPECT_THAT(outcome.out, HasSubstr("32 GT/s x2"));
  EXPECT_THAT(outcome.out, HasSubstr("pcie-narrow"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("NOT-A-SERIAL")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("0a:10:0")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("GPU-0000")));
}

struct Wrong {
  std::vector<std::string> arguments;
  int exit_status;
  std::string message, hint;
};
TEST(Check, MistakesGetOneClearErrorWithAHint) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "empty.log", "nothing of NCCL\n");
  const std::string fixture = (kSourceFolder / "tests/fixtures/spark-pair").native();
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"check", "--root", "nowhere"}, 5, "nowhere", ""},
           {{"check", "--root", fixture, "--root", fixture}, 2, "two captures are of 'spark-1'", "another machine"},
           {{"check", "--changed", "--root", fixture}, 2, "not captures", "leave out --root"},
           {{"check", "--changed", "--paste"}, 2, "do not go together", "one after the other"},
           {{"check", "--paste", "--json", "--root", fixture}, 2, "not JSON", "leave out --json"},
           {{"check", "--root", fixture, "--node", "spark-9"}, 2, "there is no node 'spark-9'", "spark-1"},
           {{"check", "--timeout", "0s"}, 2, "above zero", "10s"},
           {{"check", "--no-mesure"}, 2, "no option '--no-mesure'", "--no-measure"},
           {{"check", "ncl-log"}, 2, "no command 'ncl-log'", "nccl-log"},
           {{"check", "nccl-log"}, 2, "needs FILE", "NCCL_DEBUG=INFO"},
           {{"check", "nccl-log", "none.log"}, 5, "there is no file 'none.log'", "NCCL_DEBUG=INFO"},
           {{"check", "nccl-log", "-"}, 4, "no line of NCCL in standard input", "NCCL_DEBUG=INFO"},
           {{"check", "nccl-log", "empty.log"}, 4, "no line of NCCL", "NCCL_DEBUG=INFO"}}) {
    const Outcome outcome = run_yoke(wrong.arguments, {.folder = scratch.path()});
    EXPECT_EQ(outcome.exit_status, wrong.exit_status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.message));
    EXPECT_THAT(outcome.err, HasSubstr(wrong.hint));
  }
}

TEST(Check, ReadsNcclLogsInWordsAndReportsByItsExitStatus) {
  const fs::path logs = kSourceFolder / "tests/corpus/nccl_log_fuzz";
  const Outcome good = run_yoke({"check", "nccl-log", (logs / "good.log").native()});
  EXPECT_EQ(good.exit_status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("(both rails)"));
  const Outcome failed = run_yoke({"check", "nccl-log", "-"}, {.input = read_file(logs / "no-kernel-image.log")});
  EXPECT_EQ(failed.exit_status, 1) << failed.err;
  EXPECT_THAT(failed.out, HasSubstr("error nccl-failed: spark-a"));
  EXPECT_THAT(failed.out, HasSubstr("has no code for this GPU"));
  // Ranks that never met came to no line of NCCL.
  const Outcome unmet = run_yoke({"check", "nccl-log", "-"}, {.input = "DistStoreError: 1/2 clients joined.\n"});
  EXPECT_EQ(unmet.exit_status, 1) << unmet.err;
  EXPECT_THAT(unmet.out, HasSubstr("the ranks never met"));
  const Outcome both =
      run_yoke({"check", "nccl-log", (logs / "good.log").native(), (logs / "tcp.log").native(), "--json"});
  EXPECT_EQ(both.exit_status, 1) << both.err;
  EXPECT_EQ(findings_in(both), "nccl-tcp node-b enP7s7:192.168.0.111\n");
}

TEST(Docs, ChecksListsEveryRuleWithTheTablesColumnsInItsOrder) {
  const std::string text = read_file(kSourceFolder / "docs/checks.md");
  std::size_t last = 0;
  for (const check::Rule& rule : check::rule_table()) {
    std::string explains;
    for (const std::string& name : split(rule.explains, ' ')) {
      if (!name.empty()) explains += fmt::format("{}`{}`", explains.empty() ? "" : ", ", name);
    }
    const std::string line = fmt::format("| `{}` | {} | {} | {} | {} |", rule.name, spec::to_string(rule.severity),
                                         rule.about, check::needs_text(rule), explains.empty() ? "-" : explains);
    const std::size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << "docs/checks.md lacks: " << line;
    EXPECT_GT(at, last);
    last = at;
  }
}

struct LabFault {
  std::vector<std::string> words;
  std::string findings;
};

TEST(LabCheck, EachFaultIsFoundOnItsNodeAndRailAndNothingElseIs) {
  if (const auto why = why_no_labs({"nft", "ping"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  EXPECT_EQ(findings_of(lab), "");
  for (const LabFault& fault :
       std::vector<LabFault>{{{"cable-pulled", "--node", "2"}, "port-down spark-2 port 0\n"},
                             {{"rail-down", "--node", "1", "--rail", "A"}, "rail-down spark-1 enp1s0f0np0\n"},
                             {{"rail-unaddressed", "--node", "2"}, "rail-unaddressed spark-2 enP2p1s0f0np0\n"},
                             {{"mtu-mismatch", "--node", "2"}, "mtu-differs spark-2 enP2p1s0f0np0\n"},
                             {{"same-subnet", "--node", "1"}, "subnet-shared spark-1 enP2p1s0f0np0\n"},
                             {{"narrow-pcie", "--node", "2"}, "pcie-narrow spark-2 enP2p1s0f0np0\n"},
                             {{"port-speed-100", "--node", "2"}, "port-slow spark-2 enp1s0f0np0\n"},
                             {{"management-only", "--node", "2"}, "route-elsewhere spark-2 enP7s7\n"},
                             {{"firewall", "--node", "2"}, "firewall spark-2 enp1s0f0np0\n"},
                             {{"gid-drift", "--node", "2"}, ""},
                             {{"power-off", "--node", "2"}, "node-unreachable spark-2 -\n"}}) {
    std::vector<std::string> arguments = {"lab", "fault", "--name", lab.name};
    arguments.insert(arguments.end(), fault.words.begin(), fault.words.end());
    ASSERT_EQ(lab.yoke(arguments).exit_status, 0) << fault.words[0];
    EXPECT_EQ(findings_of(lab), fault.findings) << fault.words[0];
    if (fault.words[0] == "power-off") lab.yoke({"lab", "fault", "--name", lab.name, "power-on", "--node", "2"});
    ASSERT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "clear"}).exit_status, 0);
    EXPECT_EQ(findings_of(lab), "") << "after " << fault.words[0];
  }
  const Outcome changed = lab.yoke({"check", "--changed", "--no-measure"});
  EXPECT_EQ(changed.exit_status, 0) << changed.out << changed.err;
}

TEST(LabCheck, RemembersACleanCheckAndReportsWhatChanged) {
  if (const auto why = why_no_labs({"nft", "ping"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  const std::vector<std::string> changes = {"check", "--changed", "--no-measure"};
  const Outcome nothing_yet = lab.yoke(changes);
  EXPECT_EQ(nothing_yet.exit_status, 5);
  EXPECT_THAT(nothing_yet.err, HasSubstr("there is no clean check to compare with yet"));
  EXPECT_EQ(findings_of(lab), "");
  const Outcome same = lab.yoke(changes);
  EXPECT_EQ(same.exit_status, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("Nothing changed"));
  // A change that is no fault.
  ASSERT_TRUE(lab.exec("2", {"ip", "address", "add", "169.254.9.1/16", "dev", "enp1s0f0np0"}).ok());
  const Outcome changed = lab.yoke(changes);
  EXPECT_EQ(changed.exit_status, 1) << changed.out;
  EXPECT_THAT(changed.out, HasSubstr("spark-2  enp1s0f0np0 address"));
  EXPECT_THAT(changed.out, HasSubstr("192.168.100.2/24, 169.254.9.1/16"));
}

// Without what is told of collectives, which a sanitizer makes slow.
std::string findings_of_links(const Outcome& outcome) {
  std::string lines;
  for (const std::string& line : split(findings_in(outcome), '\n')) {
    if (!line.empty() && !(kSanitized && line.starts_with("collective-"))) lines += line + "\n";
  }
  return lines;
}

TEST(LabTimingCheck, MeasuresEachRailAndReportsTheOneThatIsSilentlySlow) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  lab.settle();
  const Outcome clean = lab.yoke({"check", "--json"}, Seconds{240});
  EXPECT_EQ(findings_of_links(clean), "") << clean.out;
  EXPECT_EQ(parse_json(clean.out, "check").find("not_measured"), nullptr) << clean.out;
  ASSERT_EQ(lab.yoke({"lab", "fault", "--name", lab.name, "slow-rail", "--node", "2"}).exit_status, 0);
  lab.settle();
  std::vector<std::string> again = {"check", "--json"};
  if (!kSanitized) again.emplace_back("--changed");  // only a clean check is remembered
  const Outcome slow = lab.yoke(again, Seconds{240});
  EXPECT_EQ(findings_of_links(slow), "rail-degraded spark-1 enP2p1s0f0np0\n") << slow.out;
  EXPECT_EQ(slow.exit_status, 1);
  if (!kSanitized) {
    EXPECT_THAT(slow.out, HasSubstr("rate of enP2p1s0f0np0"));
  }
}

// The record is kept and compared only if the machine was not busy, which every check reports.
TEST(LabTimingCheck, KeepsThisMachinesMemoryRateAndReportsThatItHasBecomeSlower) {
  const ScratchDir scratch;
  const fs::path records = scratch.path() / "yoke/checks/memory-records.json";
  const auto check = [&] {
    const Outcome outcome =
        run_yoke({"check", "--json"}, {.environment = {{"XDG_DATA_HOME", scratch.path()}}, .folder = scratch.path()});
    return std::pair(parse_json(outcome.out, "yoke check"), findings_in(outcome));
  };
  const auto memory_of = [](const Document& report) { return report.find("nodes")->items.at(0).find("memory"); };
  const auto is_evaluated = [&](const Document& report) {
    const Document* const memory = memory_of(report);  // none: less than 2 GiB are free
    return memory != nullptr && from_json<double>(*memory->find("taken")) < spec::kMaxTaken;
  };
  const auto [first, nothing] = check();
  EXPECT_THAT(nothing, Not(HasSubstr("memory-slower"))) << "there is no record yet";
  EXPECT_EQ(fs::exists(records), is_evaluated(first));
  if (!is_evaluated(first)) return;
  Document kept = parse_json(read_file(records), "records");
  Document& machine = kept.fields.at(0).second.items.at(0);
  for (auto& [name, value] : machine.fields) {
    if (name == "read") value = Document::number(10 * from_json<double>(value));
  }
  write_file_atomically(records, print_json(kept));
  const auto [second, findings] = check();
  EXPECT_EQ(memory_of(second)->find("record_date")->text.size(), 10U);
  EXPECT_EQ(findings.find("memory-slower") != std::string::npos, is_evaluated(second)) << findings;
}

TEST(LabTimingCheck, FourNodesAreLookedAtInThreeSeconds) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "4", "--topology", "ring"});
  EXPECT_EQ(findings_of(lab), "");  // the first carries the program to the nodes
  const Instant start = real_clock().now();
  const Outcome outcome = lab.yoke({"check", "--no-measure", "--json"});
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 3) << outcome.out;
  EXPECT_EQ(outcome.exit_status, 3);
}

}  // namespace
}  // namespace yoke::tests
