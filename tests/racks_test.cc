// What racks need of the program: settings explained, a prolog, Prometheus, one file for a ticket, eight rails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/check_findings.h"
#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string fixture(const std::string& name) { return (kSourceFolder / "tests/fixtures" / name).native(); }

TEST(Racks, ExplainSaysOfEachLineWhatItDoesAndWhetherItIsRight) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "job.sbatch",
                        "#!/bin/bash\n#SBATCH --nodes=2\nexport NCCL_IB_HCA==mlx5_0\nexport NCCL_NET=IB\n"
                        "export NCCL_P2P_DISABLE=1\nexport NCCL_IB_HCAS=x\n");
  const Outcome outcome =
      run_yoke({"check", "--explain", "job.sbatch", "--root", fixture("b300")}, {.folder = scratch.path()});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("job.sbatch:3: NCCL_IB_HCA==mlx5_0\n  wrong: which RDMA devices"));
  EXPECT_THAT(outcome.out, HasSubstr("leaves 7 of 8 rails"));
  EXPECT_THAT(outcome.out, HasSubstr("job.sbatch:4: NCCL_NET=IB\n  right"));
  EXPECT_THAT(outcome.out, HasSubstr("did you mean NCCL_IB_HCA?"));
  EXPECT_THAT(outcome.out, HasSubstr("5 settings, 2 wrong on b300-1."));
  const Outcome empty = run_yoke({"check", "--explain", "/dev/null", "--root", fixture("b300")});
  EXPECT_EQ(empty.exit_status, 4) << empty.err;
  EXPECT_THAT(empty.err, HasSubstr("there is no setting"));
}

TEST(Racks, FindingsAreWrittenForPrometheus) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "yoke.prom";
  const Outcome outcome = run_yoke({"check", "--root", fixture("gpu-hot"), "--prometheus", file.native()});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.err;
  const std::string text = read_file(file);
  EXPECT_THAT(text, HasSubstr("yoke_check_findings{severity=\"error\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("yoke_check_finding{rule=\"gpu-throttled\",severity=\"error\",node=\"b300-1\","
                              "subject=\"GPU 3\"} 1\n"));
  const Outcome wrong = run_yoke({"check", "--root", fixture("b300"), "--prometheus", "yoke.txt"});
  EXPECT_EQ(wrong.exit_status, 2);
}

TEST(Racks, ThePrologIsOneLineInTwoSecondsAndHoldsANodeAgainstItsBaseline) {
  const ScratchDir scratch;
  const std::map<std::string, std::string> environment = {{"XDG_DATA_HOME", scratch.path()}};
  const auto begin = std::chrono::steady_clock::now();
  const Outcome fit = run_yoke({"check", "--prolog"}, {.environment = environment});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4)) << "2 s of a machine that is not busy";
  ASSERT_EQ(fit.exit_status, 0) << fit.out << fit.err;
  EXPECT_EQ(split(fit.out, '\n').size(), 2U) << fit.out;
  EXPECT_THAT(fit.out, HasSubstr(" is fit: "));
  fs::path baseline;
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
    if (entry.path().filename().native().starts_with("node-")) baseline = entry.path();
  }
  ASSERT_FALSE(baseline.empty());
  nlohmann::json kept = nlohmann::json::parse(read_file(baseline));
  kept["gpus"] = kept.at("gpus").get<int>() + 8;
  write_file_atomically(baseline, kept.dump());
  const Outcome unfit = run_yoke({"check", "--prolog"}, {.environment = environment});
  EXPECT_EQ(unfit.exit_status, 1) << unfit.out;
  EXPECT_THAT(unfit.out, HasSubstr("is unfit: below-baseline GPUs: 0 of 8 before"));
  EXPECT_EQ(run_yoke({"check", "--prolog", "--new-baseline"}, {.environment = environment}).exit_status, 0);
  EXPECT_EQ(run_yoke({"check", "--prolog"}, {.environment = environment}).exit_status, 0);
}

TEST(Racks, SupportIsOneFileWithoutSecrets) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "job.log",
                        "spark-a:10:10 [0] NCCL INFO Using network Socket\nHF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz\n");
  const Outcome made = run_yoke({"support", "-o", "t.tar.gz", "--log", "job.log"}, {.folder = scratch.path()});
  ASSERT_EQ(made.exit_status, 0) << made.err;
  const Outcome list = run({.argv = {"tar", "-tzf", "t.tar.gz"}, .folder = scratch.path()});
  for (const char* name : {"/machine.tree", "/nvml.json", "/findings.json", "/logs/1-job.log", "/survey.json"}) {
    EXPECT_THAT(list.out, HasSubstr(name));
  }
  const Outcome log =
      run({.argv = {"tar", "-xzOf", "t.tar.gz", "yoke-support/logs/1-job.log"}, .folder = scratch.path()});
  EXPECT_THAT(log.out, HasSubstr("Using network Socket"));
  EXPECT_THAT(log.out, Not(HasSubstr("hf_AbCdEf")));
  EXPECT_EQ(run_yoke({"support", "-o", "t.tar.gz"}, {.folder = scratch.path()}).exit_status, 10)
      << "it is there already";
  // Its captures can be checked by who gets it.
  ASSERT_TRUE(run({.argv = {"tar", "-xzf", "t.tar.gz"}, .folder = scratch.path()}).ok());
  std::string capture;
  for (const auto& node : fs::directory_iterator(scratch.path() / "yoke-support/nodes")) capture = node.path();
  EXPECT_EQ(run_yoke({"probe", "--root", capture}).exit_status, 0);
  EXPECT_EQ(run_yoke({"support", "-o", "t.zip"}, {.folder = scratch.path()}).exit_status, 2);
}

TEST(Racks, AJobOfSlurmIsTheClusterAndAFileOfOtherNodesIsNotUsed) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "cluster.yaml", "name: rack\nnodes: 'b300-[1-2]'\n");
  const Outcome outcome =
      run_yoke({"check", "--no-measure", "--json", "--timeout", "2s"},
               {.environment = {{"SLURM_JOB_ID", "77"}, {"SLURM_JOB_NODELIST", "nowhere-[3-4].invalid"}},
                .folder = scratch.path()});
  EXPECT_EQ(outcome.exit_status, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("lists other nodes (b300-1, b300-2) than Slurm job 77 has"));
  EXPECT_THAT(outcome.out, HasSubstr("nowhere-4"));
}

// Processes whose command line matches `pattern` and that do not end within 10 s.
std::string left_on(const TestLab& lab, const std::string& node, const std::string& pattern) {
  return lab
      .exec(node, {"sh", "-c",
                   "for turn in $(seq 100); do pgrep -f \"$0\" > /dev/null || exit 0; sleep 0.1; done; "
                   "pgrep -a -f \"$0\"",
                   pattern})
      .out;
}

// A site that lets nobody log in to its nodes: ssh is refused (at a port where nothing listens), and a job of Slurm has
// the nodes. The collective takes the rails as ever, and ranks do not take srun's step for a launcher of theirs.
TEST(LabRacks, NodesOfASlurmJobAreReachedBySrunWhereSshIsRefused) {
  if (const auto why = why_no_labs({"munged", "slurmctld", "slurmd", "salloc"})) GTEST_SKIP() << *why;
  const TestLab lab({"--with", "slurm"});
  std::string text;
  for (std::string line : split(read_file(lab.folder / "cluster.yaml"), '\n')) {
    if (line.starts_with("lab:")) continue;
    if (const std::size_t port = line.find("port: 22"); port != std::string::npos) line.replace(port, 8, "port: 9");
    text += line + "\n";
  }
  const Outcome written = run_yoke(
      lab.exec_arguments("1", {"sh", "-c", "mkdir /root/site && cat > /root/site/cluster.yaml"}), {.input = text});
  ASSERT_EQ(written.exit_status, 0) << written.err;
  const auto in_job = [&](const std::string& command) {
    return lab.exec("1", {"sh", "-c", "cd /root/site && exec salloc --quiet -N2 " + command});
  };
  const Outcome outside = lab.exec("1", {"sh", "-c", "cd /root/site && exec yoke cluster reach"});
  EXPECT_NE(outside.exit_status, 0) << "ssh is refused";
  const Outcome ranks = in_job("yoke job run -- sh -c 'echo rank $RANK of $WORLD_SIZE at ${SLURM_PROCID:-no step}'");
  EXPECT_EQ(ranks.exit_status, 0) << ranks.err;
  EXPECT_THAT(ranks.out, HasSubstr("spark-1/0 | rank 0 of 2 at no step"));
  EXPECT_THAT(ranks.out, HasSubstr("spark-2/1 | rank 1 of 2 at no step"));
  const Outcome bench = in_job("yoke bench all-reduce -b 64K -e 64K -n 3 --no-history");
  EXPECT_EQ(bench.exit_status, 0) << bench.out << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("A (192.168.100.1) and B (192.168.101.1)"));
  EXPECT_THAT(bench.out, HasSubstr("# Out of bounds values : 0 OK"));
  const Outcome failed = in_job("yoke job run -- sh -c 'exit $((3 + RANK))'");
  EXPECT_THAT(failed.exit_status, testing::AnyOf(3, 4)) << failed.err;
  EXPECT_EQ(left_on(lab, "2", "yoke [a]gent"), "");
  // The allocation ends while the ranks work.
  const Outcome cut = run_yoke(lab.exec_arguments("1", {"sh", "-s"}), {.input = R"sh(cd /root/site
salloc --quiet -N2 sh -c '
  ( for turn in $(seq 300); do [ "$(grep -c "| up" out)" = 2 ] && break; sleep 0.1; done; scancel $SLURM_JOB_ID ) &
  yoke job run -- sh -c "echo up; exec sleep 600" > out 2>&1
  echo "status $?" >> out'
cat out
)sh"});
  EXPECT_THAT(cut.out, testing::ContainsRegex("Slurm job [0-9]+ has ended, and with it all that ran on spark-[12]"));
  EXPECT_THAT(cut.out, HasSubstr("sacct --jobs="));
  EXPECT_THAT(cut.out, Not(HasSubstr("status 0")));
  for (const char* const node : {"1", "2"}) {
    EXPECT_EQ(left_on(lab, node, "sleep [6]00|yoke [a]gent|yoke [n]ode"), "") << "on node " << node;
  }
}

// Every fault that one rail can have, on rail C of the second of two virtual servers.
TEST(LabRacks, EachFaultOfARailIsFoundOnThatRailOfEight) {
  if (const auto why = why_no_labs({"nft", "ping"})) GTEST_SKIP() << *why;
  const TestLab lab({"--hardware", "b300", "--nodes", "2"});
  EXPECT_EQ(findings_of(lab), "");
  const Outcome refused = lab.yoke({"lab", "fault", "rail-down", "--node", "2", "--rail", "K"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("rails are A, B, C, D, E, F, G, H"));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"lab", "status"},
                                                  {"cluster", "reach"},
                                                  {"probe"},
                                                  {"gameday", "--list"},
                                                  {"check", "--no-measure"},
                                                  {"watch", "--once"}}) {
    const std::string out = lab.yoke(command).out;
    EXPECT_GT(out.size(), 100U) << command.front();
    for (const std::string& line : split(out, '\n')) EXPECT_LE(line.size(), 100U) << command.front() << ": " << line;
  }
  // A server's port is one rail: with its link gone the whole port is down.
  for (const auto& [fault, finding] : {std::pair{"rail-down", "port-down b300-2 port 2\n"},
                                       std::pair{"rail-unaddressed", "rail-unaddressed b300-2 enp58s0np0\n"},
                                       std::pair{"mtu-mismatch", "mtu-differs b300-2 enp58s0np0\n"},
                                       std::pair{"narrow-pcie", "pcie-narrow b300-2 enp58s0np0\n"}}) {
    const Outcome made = lab.yoke({"lab", "fault", fault, "--node", "2", "--rail", "C"});
    ASSERT_EQ(made.exit_status, 0) << made.err;
    EXPECT_THAT(findings_of(lab), HasSubstr(finding)) << fault;
    ASSERT_EQ(lab.yoke({"lab", "fault", "clear"}).exit_status, 0);
  }
}

}  // namespace
}  // namespace yoke::tests
