// yoke launch on a lab, and its text for machines that are not here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/lab_fixture.h"
#include "tests/moved_sshd.h"
#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Launch, RanksOfAJobGetThePinsAndAUsersOwnSettingWins) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "echo NCCL_IB_HCA=mlx5_9 >> /etc/environment"}).ok());
  const std::vector<std::string> print = {"sh", "-c", "echo $NCCL_IB_HCA $GLOO_SOCKET_IFNAME"};
  const Outcome outcome = lab.yoke(joined({"job", "run", "--"}, print));
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("spark-1/0 | =rocep1s0f0:1,roceP2p1s0f0:1 enp1s0f0np0\n"));
  EXPECT_THAT(outcome.out, HasSubstr("spark-2/1 | mlx5_9 enp1s0f0np0\n"));
  EXPECT_THAT(outcome.err, HasSubstr("spark-2: NCCL_IB_HCA stays mlx5_9 (/etc/environment)"));
  const Outcome given = lab.yoke(joined({"job", "run", "--env", "GLOO_SOCKET_IFNAME=lo", "--"}, print));
  EXPECT_THAT(given.out, HasSubstr("spark-1/0 | =rocep1s0f0:1,roceP2p1s0f0:1 lo\n"));
  const Outcome without = lab.yoke(joined({"job", "run", "--no-pins", "--"}, print));
  EXPECT_THAT(without.out, HasSubstr("spark-1/0 | \n"));
  // A rail that is down is not pinned, and the shell reads what env prints.
  ASSERT_TRUE(lab.exec("1", {"ip", "link", "set", "enP2p1s0f0np0", "down"}).ok());
  const Outcome env = lab.yoke({"launch", "env"});
  ASSERT_TRUE(env.ok()) << env.err;
  EXPECT_THAT(env.out, HasSubstr("# enP2p1s0f0np0 is left out: it has no link now."));
  const Outcome shell = run({.argv = {"sh", "-c", "eval \"$1\"; echo \"$NCCL_IB_HCA\"", "sh", env.out}});
  EXPECT_EQ(shell.out, "=rocep1s0f0:1\n") << env.out;
  const Outcome wrong = lab.yoke({"launch", "env", "--node", "spark-9"});
  EXPECT_EQ(wrong.exit_status, info(ErrorCode::kNotFound).exit_status);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'spark-"));
}

// ---- engines, with programs in their place: none of the real ones can be installed here

// A folder that the nodes of a lab see too: they have a /tmp of their own.
struct SharedFolder {
  const ScratchDir scratch{"yoke-launch", "/var/tmp"};
  std::string write(const std::string& name, const std::string& text) const {
    write_file_atomically(scratch.path() / name, text, {.mode = 0755});
    return scratch.path() / name;
  }
  // A copy of a shipped description that runs another program in place of vLLM.
  std::string describe(const std::vector<std::string>& words) const {
    std::string text = run_yoke({"launch", "show", "vllm"}).out;
    const std::string own = "      - vllm\n      - serve\n";
    std::string list;
    for (const std::string& word : words) list += "      - " + word + "\n";
    text.replace(text.find(own), own.size(), list);
    return write("mine.yaml", text);
  }
};

TEST(Launch, EveryRankIsStartedWithItsCommandAndItsEnvironment) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  const SharedFolder shared;
  const std::string recorder = shared.write(
      "recorder", "#!/bin/sh\necho \"argv $*\"\necho \"host $VLLM_HOST_IP hca $NCCL_IB_HCA\"\nsleep 0.5\n");
  const std::string engine = shared.describe({recorder});
  const Outcome outcome = lab.yoke({"launch", engine, "m", "--no-plan", "--floor", "16MiB", "--", "--note", "a b"});
  ASSERT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  for (const char* line :
       {"spark-1/0 | argv m --nnodes 2 --node-rank 0 --master-addr 192.168.100.1 --master-port 29501 "
        "--tensor-parallel-size 2 --gpu-memory-utilization 0.88 --max-num-batched-tokens 8192 --host 0.0.0.0 --port "
        "8000 "
        "--note a b\n",
        "spark-1/0 | host 192.168.100.1 hca =rocep1s0f0:1,roceP2p1s0f0:1\n",
        "spark-2/1 | argv m --nnodes 2 --node-rank 1 --master-addr 192.168.100.1 --master-port 29501 "
        "--tensor-parallel-size 2 --gpu-memory-utilization 0.88 --max-num-batched-tokens 8192 --headless --note a b\n",
        "spark-2/1 | host 192.168.100.2 hca =rocep1s0f0:1,roceP2p1s0f0:1\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  // The preflight names what would fail, and starts nothing.
  const Outcome missing = lab.yoke({"launch", "vllm", "/no/model", "--no-plan"});
  EXPECT_EQ(missing.exit_status, kExitFindings) << missing.err;
  EXPECT_THAT(missing.out, HasSubstr("vllm is not installed on spark-2."));
  EXPECT_THAT(missing.out, HasSubstr("The model is not on spark-1."));
  const Outcome large = lab.yoke({"launch", "vllm", "llama-3.1-405b", "--dry-run"});
  EXPECT_EQ(large.exit_status, info(ErrorCode::kExhausted).exit_status) << large.out;
  EXPECT_THAT(large.err, HasSubstr("does not fit"));
}

constexpr const char* kStandInServer =
    "import http.server, sys, time\n"
    "if '--headless' in sys.argv:\n"
    "    time.sleep(3600)\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    def do_POST(self):\n"
    "        self.rfile.read(int(self.headers['Content-Length']))\n"
    "        body = b'{\"choices\": [{\"text\": \"1\"}]}'\n"
    "        self.send_response(200)\n"
    "        self.send_header('Content-Length', str(len(body)))\n"
    "        self.end_headers()\n"
    "        self.wfile.write(body)\n"
    "    def log_message(self, *words): pass\n"
    "port = int(sys.argv[sys.argv.index('--port') + 1])\n"
    "http.server.ThreadingHTTPServer(('0.0.0.0', port), Handler).serve_forever()\n";

// Reads lines until one holds the words; the seconds that it took, or nothing at the end.
std::optional<double> seconds_until(Process& process, std::string_view words, Seconds limit) {
  const Instant start = real_clock().now();
  const Deadline deadline = Deadline::after(limit);
  while (const auto line = process.read_line(deadline)) {
    if (line->text.find(words) == std::string::npos) continue;
    return std::chrono::duration<double>(real_clock().now() - start).count();
  }
  return std::nullopt;
}

TEST(LabTimingLaunch, AStoppedRankIsNamedWithinTenSecondsAndTheEngineComesBack) {
  if (const auto why = why_no_labs({"python3"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  const SharedFolder shared;
  const std::string engine = shared.describe({"/usr/bin/python3", shared.write("server.py", kStandInServer)});
  Process launch({.argv = {YOKE_PROGRAM, "launch", engine, "m", "--no-plan", "--floor", "16MiB", "--pause", "0.2s"},
                  .folder = lab.folder});
  ASSERT_TRUE(seconds_until(launch, "yoke guard: ready: the first token came", {30}));
  ASSERT_TRUE(lab.exec("2", {"pkill", "-STOP", "-x", "python3"}).ok());
  const auto named =
      seconds_until(launch, "rank 1 on spark-2 is stopped (SIGSTOP); all ranks are stopped, start 2 of 5", {20});
  ASSERT_TRUE(named);
  EXPECT_LT(*named, 10);
  EXPECT_TRUE(seconds_until(launch, "yoke guard: ready: the first token came", {30}));
  launch.kill_tree();
  const Outcome left = lab.exec("2", {"pgrep", "-x", "python3"});
  EXPECT_EQ(left.out, "") << "nothing is left on the other node";
}

TEST(LabTimingLaunch, AProgramWithoutEndIsStoppedBeforeTheNodeStalls) {
  if (const auto why = why_no_labs({"python3"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2", "--memory", "512MiB"});
  const SharedFolder shared;
  const std::string hog =
      shared.write("hog.py", "held = []\nwhile True:\n    held.append(bytearray(b'x' * (1 << 20)))\n");
  const std::string pause = shared.write("pause.py",
                                         "import time\n"
                                         "last = time.monotonic()\nend = last + 5\nlongest = 0\n"
                                         "while last < end:\n"
                                         "    time.sleep(0.01)\n    open('/proc/self/stat').read()\n"
                                         "    now = time.monotonic()\n    longest = max(longest, now - last)\n"
                                         "    last = now\nprint('longest', longest)\n");
  for (const std::string& guard : {std::string("--floor 96MiB"), std::string("--floor 16MiB --limit 200MiB")}) {
    const Outcome outcome = lab.exec(
        "1", {"sh", "-c",
              fmt::format("python3 {} & {} launch guard {} --lower=--max-num-seqs -- python3 {}; echo rc $?; wait",
                          pause, YOKE_PROGRAM, guard, hog)});
    const std::size_t at = outcome.out.find("longest ");
    ASSERT_NE(at, std::string::npos) << outcome.out << outcome.err;
    EXPECT_LT(std::stod(outcome.out.substr(at + 8)), 1.0) << "another process of the node stood still";
    if (guard.find("--limit") != std::string::npos) {
      EXPECT_THAT(outcome.out, HasSubstr("rc 137")) << "the control group's limit, where one can be made, comes first";
    } else {
      EXPECT_THAT(outcome.out, HasSubstr(fmt::format("rc {}", info(ErrorCode::kExhausted).exit_status)));
      EXPECT_THAT(outcome.err, HasSubstr("the floor is 96 MiB"));
      // The program took most of the node's 512 MiB, the last of it faster than anybody counts processes' memory.
      std::smatch used;
      ASSERT_TRUE(std::regex_search(outcome.err, used, std::regex("That is ([0-9.]+) MiB less than when")))
          << outcome.err;
      EXPECT_GT(std::stod(used[1]), 150);
      EXPECT_THAT(outcome.err, HasSubstr("lower --max-num-seqs"));
    }
  }
}

// ---- examples/

struct ExampleCase {
  std::string folder, script, fixture, plan;
  std::vector<std::string> words;  // of the printed commands
};

// The line of an example's script, for machines that are not here: the facts are those of a captured one.
Outcome dry_run_example(const ExampleCase& example, const std::string& through) {
  const ScratchDir scratch;
  const std::string program = YOKE_PROGRAM;
  std::filesystem::create_symlink(program, scratch.path() / "yoke");
  return run({.argv = {kSourceFolder / "examples" / example.folder / example.script, "--dry-run", "--through", through,
                       "--root", kSourceFolder / "tests/fixtures" / example.fixture},
              .environment = {{"PATH", scratch.path().native() + ":/usr/bin:/bin"}},
              .folder = kSourceFolder / "examples" / example.folder,
              .timeout = Seconds{60}});
}

TEST(Launch, ExamplesPrintTheCommandsOfEveryNodeAndThePlanBesideThemIsCurrent) {
  const std::vector<ExampleCase> examples = {
      {"405b-two-sparks",
       "start.sh",
       "spark-pair",
       "plan llama-3.1-405b --format int4 --engine vllm --context 4k --requests 4",
       {"--tensor-parallel-size 2", "--max-model-len 4096", "--master-addr 192.168.100.1",
        "VLLM_HOST_IP=192.168.100.2"}},
      {"7b-pretrain-8-gpus",
       "start.sh",
       "b300",
       "plan llama-2-7b --goal train --format fp8 --tp 2 --dp 4 --sequence 4k --batch 512",
       {"--nproc_per_node 8", "model.tensor_model_parallel_size=2"}},
      {"70b-16-gpus",
       "start.sh",
       "b300",
       "plan llama-3.1-70b --goal train --format fp8 --tp 8 --dp 2 --sequence 8k --batch 256",
       {"--nnodes 2", "--master_addr 10.0.0.11", "model.tensor_model_parallel_size=8", "NCCL_IB_HCA='=mlx5_0:1,"}},
      {"70b-16-gpus", "start-fsdp.sh", "b300", "", {"--nnodes 2", "train_fsdp.py --model llama-3-70b"}}};
  for (const ExampleCase& example : examples) {
    const Outcome outcome = dry_run_example(example, "script");
    ASSERT_TRUE(outcome.ok()) << example.folder << outcome.err;
    std::string flat = outcome.out;
    for (std::size_t at = 0; (at = flat.find(" \\\n  ", at)) != std::string::npos;) flat.replace(at, 5, " ");
    for (const std::string& words : example.words) EXPECT_THAT(flat, HasSubstr(words)) << example.folder;
    EXPECT_TRUE(dry_run_example(example, "slurm").ok()) << example.folder;
    if (example.plan.empty()) continue;
    const auto folder = kSourceFolder / "examples" / example.folder;
    const Outcome plan = run_yoke(joined(split(example.plan, ' '), {"--on", "cluster.yaml"}), {.folder = folder});
    // Figures of the plan move with its constants; what it says of the layout is the example's.
    const std::string written = read_file(folder / "plan.txt");
    EXPECT_EQ(plan.out.substr(0, plan.out.find(':')), written.substr(0, written.find(':')))
        << example.folder << plan.err;
  }
}

TEST(Launch, AnImageIsRefusedWhereNoContainerIsStarted) {
  const ScratchDir scratch;
  const auto launch = [&](const std::string& through) {
    return run_yoke(
        {"launch", "vllm", "m", "--no-plan", "--dry-run", "--image", "example.org/vllm:1", "--through", through},
        {.folder = scratch.path()});
  };
  for (const char* through : {"ssh", "script", "slurm"}) {
    const Outcome outcome = launch(through);
    EXPECT_EQ(outcome.exit_status, info(ErrorCode::kUsage).exit_status) << through;
    EXPECT_THAT(outcome.err, HasSubstr("--image is for containers")) << through;
  }
  EXPECT_THAT(launch("docker").out, HasSubstr("example.org/vllm:1 vllm serve"));
}

// ---- real Slurm

constexpr const char* kMpiEngine =
    "name: allreduce\ntitle: yoke's own all-reduce by MPI\ngoal: train\nprogram: srun\ntasks: gpu\n"
    "processes: [{{ name: x, on: head, command: [mpirun] }}]\n"
    "slurm: {{ mpi: pmix, command: [{}, bench, all-reduce, -b, 64K, -e, 64K, -n, \"5\", --no-history] }}\n";

TEST(Launch, SlurmRunsTheGeneratedScriptAndScancelLeavesNothing) {
  if (const auto why = why_no_labs({"munged", "slurmctld", "slurmd", "sbatch", "mpirun"})) GTEST_SKIP() << *why;
  if (kSanitized) GTEST_SKIP() << "Open MPI itself makes sanitizers report";
  const TestLab lab({"--with", "slurm"});
  const SharedFolder shared;
  const std::string folder = shared.scratch.path();
  // "Slurm's job is 1. …"
  const auto submit = [&](const std::string& engine, const std::vector<std::string>& more) {
    const Outcome outcome = lab.yoke(joined({"launch", engine, "--through", "slurm", "--folder", folder}, more));
    EXPECT_TRUE(outcome.ok()) << outcome.out << outcome.err;
    const std::size_t at = outcome.out.find("Slurm's job is ");
    return at == std::string::npos ? std::string("0") : std::to_string(std::atoi(outcome.out.c_str() + at + 15));
  };
  const auto state_of = [&](const std::string& job) {
    return lab.exec("1", {"sh", "-c", "scontrol show job " + job + " | grep -o 'JobState=[A-Z]*'"}).out;
  };
  const auto wait_for = [&](const std::string& job, const std::string& state) {
    const Deadline deadline = Deadline::after(Seconds{40});
    std::string now;
    while ((now = state_of(job)) != "JobState=" + state + "\n" && !deadline.expired()) {
      if (now == "JobState=FAILED\n") break;
      real_clock().sleep(Seconds{0.2});
    }
    return now;
  };
  const std::string mpi = shared.write("allreduce.yaml", fmt::format(kMpiEngine, YOKE_PROGRAM));
  const std::string first = submit(mpi, {"--env", "OMPI_MCA_pml=ob1", "--env", "OMPI_MCA_btl=tcp,self"});
  EXPECT_EQ(wait_for(first, "COMPLETED"), "JobState=COMPLETED\n");
  // What a node writes is its own.
  const std::string text = lab.exec("1", {"cat", fmt::format("{}/yoke-allreduce-{}.out", folder, first)}).out;
  EXPECT_THAT(text, HasSubstr("# Out of bounds values : 0 OK"));
  EXPECT_THAT(text, HasSubstr("2 ranks"));

  const std::string recorder = shared.write(
      "train", "#!/bin/sh\necho \"rank $SLURM_NODEID: $*\" >> " + folder + "/lines-$SLURM_NODEID\nexec sleep 1000\n");
  std::string torchrun = run_yoke({"launch", "show", "torchrun"}).out;
  torchrun.replace(torchrun.find("      - torchrun\n"), 17, "      - " + recorder + "\n");
  const std::string second = submit(shared.write("torchrun.yaml", torchrun), {"--", "train.py"});
  EXPECT_EQ(wait_for(second, "RUNNING"), "JobState=RUNNING\n");
  const std::string wait =
      fmt::format("for i in $(seq 200); do [ -s {0} ] && break; sleep 0.1; done; cat {0}", folder + "/lines-1");
  EXPECT_EQ(lab.exec("2", {"sh", "-c", wait}).out,
            "rank 1: --nnodes 2 --nproc_per_node 1 --node_rank 1 --master_addr 192.168.100.1 --master_port 29500 "
            "train.py\n");
  ASSERT_TRUE(lab.exec("1", {"scancel", second}).ok());
  EXPECT_EQ(wait_for(second, "CANCELLED"), "JobState=CANCELLED\n");

  // Training whose ranks make no step: the guard of a node ends the job, and the rank is named. A shell counts in the
  // place of PyTorch: five steps, and where it is when it is asked.
  const std::string rank =
      shared.write("rank",
                   "#!/bin/sh\nfor word in \"$@\"; do case $word in */yoke_steps.py) folder=${word%/*} ;; esac; done\n"
                   "file=$folder/rank-$SLURM_NODEID\n"
                   "trap 'echo \"File \\\"/x/train.py\\\", line 7 in load\" > $file.stack' USR2\n"
                   "for i in 1 2 3 4 5; do echo \"$i $$ \" > $file; sleep 0.1; done\n"
                   "while :; do sleep 0.05; done\n");
  torchrun.replace(torchrun.find(recorder), recorder.size(), rank);
  const std::string third =
      submit(shared.write("still.yaml", torchrun), {"--floor", "16MiB", "--progress", "2s", "--", "train.py"});
  EXPECT_EQ(wait_for(third, "FAILED"), "JobState=FAILED\n");
  EXPECT_THAT(lab.exec("1", {"cat", fmt::format("{}/yoke-torchrun-{}.out", folder, third)}).out,
              testing::ContainsRegex("rank [01] has made no step for [0-9]+ s, after 5; it is at train.py:7 in load"));
  for (const char* node : {"1", "2"}) {
    const Outcome left =
        lab.exec(node, {"sh", "-c", "for i in $(seq 100); do pgrep -fx 'sleep 1000' || exit 0; sleep 0.1; done"});
    EXPECT_EQ(left.exit_status, 0) << node << left.out;
  }
}

// ---- yoke itself, and a real torchrun

// What the server answers once it is ready; the words of the last answer otherwise.
std::string completion_of(const TestLab& lab) {
  const std::string ask =
      "for i in $(seq 150); do curl -s -m 20 http://127.0.0.1:8000/v1/completions -d '{\"prompt\": \"The cable\", "
      "\"max_tokens\": 12, \"temperature\": 0}' | grep -o '\"text\":\"[^\"]*\"' && exit 0; sleep 0.2; done; exit 1";
  return lab.exec("1", {"sh", "-c", ask}).out;
}

TEST(Launch, YokeServesTheSameAnswerOverSshAndOverSlurm) {
  if (const auto why = why_no_labs({"munged", "slurmctld", "slurmd", "sbatch", "mpirun", "curl"})) {
    GTEST_SKIP() << *why;
  }
  if (kSanitized) GTEST_SKIP() << "Open MPI itself makes sanitizers report";
  const TestLab lab({"--with", "slurm"});
  const SharedFolder shared;
  const std::string model = kSourceFolder / "models/nano";
  std::string over_ssh;
  {
    Process launch({.argv = {YOKE_PROGRAM, "launch", "yoke", model, "--floor", "16MiB"}, .folder = lab.folder});
    ASSERT_TRUE(seconds_until(launch, "yoke guard: ready: the first token came", {30})) << "the canary knows its name";
    over_ssh = completion_of(lab);
    launch.kill_tree();
  }
  EXPECT_THAT(over_ssh, HasSubstr("\"text\":\"")) << "an answer came";
  const Outcome outcome = lab.yoke({"launch", "yoke", model, "--through", "slurm", "--folder", shared.scratch.path(),
                                    "--env", "OMPI_MCA_pml=ob1", "--env", "OMPI_MCA_btl=tcp,self"});
  ASSERT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  EXPECT_EQ(completion_of(lab), over_ssh);
  ASSERT_TRUE(lab.exec("1", {"scancel", "1"}).ok());
  // A node that Slurm has taken out is named, and nothing is submitted.
  ASSERT_TRUE(lab.exec("1", {"scontrol", "update", "nodename=spark-2", "state=drain", "reason=cable"}).ok());
  const Outcome drained = lab.yoke({"launch", "yoke", model, "--through", "slurm"});
  EXPECT_EQ(drained.exit_status, kExitFindings) << drained.out;
  EXPECT_THAT(drained.out, HasSubstr("Slurm does not start jobs on spark-2."));
  EXPECT_THAT(drained.out, HasSubstr("cable"));
}

TEST(Launch, TorchrunReducesOverTheRailAndItsTracesAreCollected) {
  if (const auto why = why_no_labs({"torchrun", "tar"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2", "--memory", "1GiB"});
  const SharedFolder shared;
  const std::string script =
      shared.write("reduce.py",
                   "import torch, torch.distributed as dist\n"
                   "dist.init_process_group('gloo')\n"
                   "x = torch.full((1 << 18,), float(dist.get_rank() + 1))\n"
                   "dist.all_reduce(x)\n"
                   "print('rank', dist.get_rank(), 'of', dist.get_world_size(), 'sum', int(x[7]))\n"
                   "dist.barrier()\n"
                   "dist.destroy_process_group()  # its threads end before the interpreter does\n");
  const std::string traces = shared.scratch.path() / "traces";
  // --tee and --redirects go around a fault of PyTorch 1.13 with Python 3.11.
  const Outcome outcome = lab.yoke(
      {"launch", "torchrun", "--floor", "16MiB", "--profile", traces, "--", "--tee", "1", "--redirects", "1", script});
  ASSERT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rank 0 of 2 sum 3"));
  EXPECT_THAT(outcome.out, HasSubstr("rank 1 of 2 sum 3"));
  EXPECT_THAT(outcome.out, HasSubstr("Traces of all nodes: " + traces + "/index.html"));
  // What a node writes is its own.
  const std::string page = lab.exec("1", {"cat", traces + "/index.html"}).out;
  for (const char* trace : {"spark-1/spark-1-rank0.json.gz", "spark-2/spark-2-rank1.json.gz"}) {
    EXPECT_THAT(page, HasSubstr(trace));
    EXPECT_TRUE(lab.exec("1", {"sh", "-c", "gzip -t " + traces + "/" + trace}).ok()) << trace;
  }
  EXPECT_EQ(lab.exec("2", {"sh", "-c", "ls -d /var/tmp/yoke-profile-* 2>/dev/null"}).out, "") << "nothing stays there";
}

// mpirun of the head logs in to the others itself: it must do so as the cluster file says.
TEST(Launch, MpirunOfAnEngineReachesANodeByItsUserAndPort) {
  if (const auto why = why_no_labs({"mpirun"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  const SharedFolder shared;
  ASSERT_NO_FATAL_FAILURE(move_ssh_of_node_2(lab));
  const std::string recorder =
      shared.write("recorder", "#!/bin/sh\necho \"rank $OMPI_COMM_WORLD_RANK on $(uname -n) hca $NCCL_IB_HCA\"\n");
  std::string engine = run_yoke({"launch", "show", "trtllm"}).out;
  const std::string own = "      - trtllm-llmapi-launch\n      - trtllm-serve\n";
  engine.replace(engine.find(own), own.size(), "      - " + recorder + "\n");
  const Outcome outcome = lab.yoke({"launch", shared.write("mine.yaml", engine), "m", "--no-plan", "--floor", "16MiB"});
  ASSERT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  for (const char* line : {"rank 0 on spark-1 hca =rocep1s0f0:1,", "rank 1 on spark-2 hca =rocep1s0f0:1,"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_EQ(lab.exec("1", {"sh", "-c", "ls -d /tmp/yoke-launch-* 2>/dev/null"}).out, "") << "the hostfile is gone";
}

// The others wait in the all-reduce for the one rank that does something else.
TEST(LabTimingLaunch, ARankThatMakesNoStepIsNamedWithItsPlace) {
  if (const auto why = why_no_labs({"torchrun"})) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2", "--memory", "1GiB"});
  const SharedFolder shared;
  const std::string script = shared.write("train.py",
                                          "import time\n"
                                          "import torch, torch.distributed as dist\n"
                                          "def load(step):\n"
                                          "    if step == 5 and dist.get_rank() == 1:\n"
                                          "        time.sleep(600)\n"
                                          "    return torch.ones(4)\n"
                                          "dist.init_process_group('gloo')\n"
                                          "weight = torch.zeros(4, requires_grad=True)\n"
                                          "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
                                          "for step in range(1000):\n"
                                          "    (weight * load(step)).sum().backward()\n"
                                          "    dist.all_reduce(weight.grad)\n"
                                          "    optimizer.step()\n"
                                          "    print('step', step, flush=True)\n");
  Process launch({.argv = {YOKE_PROGRAM, "launch", "torchrun", "--floor", "16MiB", "--progress", "4s", "--", "--tee",
                           "1", "--redirects", "1", script},
                  .folder = lab.folder});
  ASSERT_TRUE(seconds_until(launch, "step 4", {120}));
  const auto named = seconds_until(launch, "rank 1 has made no step for", {40});
  ASSERT_TRUE(named);
  EXPECT_LT(*named, 10);
  const auto outcome = launch.wait(Deadline::after(Seconds{40}));
  ASSERT_TRUE(outcome);
  EXPECT_NE(outcome->exit_status, 0);
  EXPECT_EQ(lab.exec("1", {"pgrep", "-f", "train.py"}).out, "") << "nothing is left on the other node";
}

}  // namespace
}  // namespace yoke::tests
