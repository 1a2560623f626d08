#include "yoke/launch/through.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/yaml.h"
#include "yoke/launch/launch_cases_testing.h"
#include "yoke/launch/run.h"

namespace yoke::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

LaunchPlan some_plan(const std::string& engine, const LaunchCase& launch_case) {
  LaunchOptions options{.model = "/models/it's m", .modules = {"cuda/12.4", "nccl/2.20"}};
  if (load_engine(engine).rest == "required") options.rest = {"train.py", "--note=a b$c"};
  return plan_launch(load_engine(engine), options, launch_case.nodes, {});
}

// Training whose steps are counted.
LaunchPlan watched_plan(const std::string& engine) {
  const LaunchOptions options{
      .rest = {"train.py"}, .yoke = "/opt/yoke", .progress = Seconds{90}, .scratch = "/tmp/yoke-launch-1a"};
  return plan_launch(load_engine(engine), options, two_servers().nodes, {});
}

// Without its line breaks.
std::string flat(std::string text) {
  for (std::size_t at = 0; (at = text.find(" \\\n", at)) != std::string::npos;) {
    text.replace(at, text.find_first_not_of(' ', at + 3) - at, " ");
  }
  return text;
}

const ThroughOptions kOptions = {.time_limit = "04:00:00", .rdma_resource = "rdma/hca", .floor = Bytes{8LL << 30}};

TEST(Through, EveryScriptOfEveryEnginePassesShellcheck) {
  if (!is_installed("shellcheck")) GTEST_SKIP() << "shellcheck is not installed";
  const ScratchDir scratch;
  std::vector<std::string> argv = {"shellcheck", "--shell=bash"};
  const auto add = [&](const std::string& text) {
    argv.push_back(scratch.path() / fmt::format("{}.sh", argv.size()));
    write_file_atomically(argv.back(), text);
  };
  const auto add_all = [&](const LaunchPlan& plan, bool has_containers) {
    add(render(Through::kScript, plan, kOptions).front().text);
    for (const Through way : {Through::kSsh, Through::kDocker, Through::kApptainer}) {
      if (!has_containers) break;
      add(render(way, plan, kOptions).back().text);
      add(render_units(way, plan, kOptions).front().text);
    }
    const std::string batch = slurm_script(plan, kOptions).text;
    add(batch);
    // What runs inside of srun is a text to shellcheck: look at it alone too.
    const std::size_t begin = batch.find("<<'TASK'\n") + 9;
    const std::string task = batch.substr(begin, batch.find("\nTASK\n") - begin);
    add("#!/bin/bash\n# shellcheck disable=SC2154,SC2034,SC2016\n:\n" + task + "\n");
    EXPECT_EQ(find_double_launch(batch), "") << plan.engine.name;
  };
  for (const std::string& engine : engine_names()) {
    add_all(some_plan(engine, engine == "llama.cpp" ? three_sparks() : two_servers()), engine == "vllm");
  }
  add_all(watched_plan("torchrun"), true);
  const Outcome outcome = run({.argv = argv});
  EXPECT_TRUE(outcome.ok()) << outcome.out;
}

TEST(Through, ADockerLineHasWhatRdmaNeedsAndNoSecret) {
  const LaunchPlan plan = some_plan("vllm", two_sparks());
  const auto files = render(Through::kDocker, plan, kOptions);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].name, "node-2.sh");
  for (const char* words : {"--network host", "--ipc host", "--gpus all", "--device /dev/infiniband",
                            "--cap-add IPC_LOCK", "--ulimit memlock=-1", "--env HF_TOKEN ", "--entrypoint= ",
                            "VLLM_HOST_IP=192.168.100.2", "nvcr.io/nvidia/vllm:26.05-py3 vllm serve"}) {
    EXPECT_THAT(flat(files[1].text), HasSubstr(words));
  }
  EXPECT_ERROR(render(Through::kDocker, some_plan("trtllm", two_servers()), kOptions), ErrorCode::kUnsupported,
               "mpirun");
  LaunchCase unknown = two_sparks();
  for (LaunchNode& node : unknown.nodes) node.gpu_name = "NVIDIA Thing";
  EXPECT_ERROR(render(Through::kDocker, some_plan("vllm", unknown), kOptions), ErrorCode::kUsage, "no container image");
}

TEST(Through, ApptainerGetsValuesWithCommasByItsPrefix) {
  const auto files = render(Through::kApptainer, some_plan("vllm", two_sparks()), kOptions);
  EXPECT_THAT(files[0].text, HasSubstr("export APPTAINERENV_NCCL_IB_HCA='=rocep1s0f0:1,roceP2p1s0f0:1'\n"));
  EXPECT_THAT(files[0].text, HasSubstr("--bind '/dev/infiniband,"));
  EXPECT_THAT(files[0].text, HasSubstr("docker://nvcr.io/nvidia/vllm:26.05-py3"));
}

TEST(Through, ScriptsOfContainersHaveTheGuardToo) {
  const LaunchPlan plan = some_plan("vllm", two_sparks());
  const auto docker = render(Through::kDocker, plan, kOptions);
  EXPECT_THAT(docker[0].text, HasSubstr("exec yoke launch guard --floor 8GiB --lower=--gpu-memory-utilization "));
  EXPECT_THAT(docker[0].text, HasSubstr("--canary 8000 --canary-model '/models/it'\\''s m' --start-limit 1800s "
                                        "--container yoke-vllm -- \"$@\"\n"));
  EXPECT_THAT(docker[0].text, HasSubstr("\nrun docker run "));
  EXPECT_THAT(docker[1].text, HasSubstr(" --follow 192.168.100.1:8000 --container yoke-vllm -- "));
  const auto apptainer = render(Through::kApptainer, plan, kOptions);
  EXPECT_THAT(apptainer[1].text, HasSubstr(" --follow 192.168.100.1:8000 -- "));
  EXPECT_THAT(apptainer[1].text, HasSubstr("\nrun apptainer exec "));
  EXPECT_EQ(followed_port(some_plan("llama.cpp", two_sparks()), 1), std::nullopt) << "its head reconnects";
  EXPECT_THAT(render(Through::kScript, some_plan("torchrun", two_sparks()), {}).front().text, Not(HasSubstr("guard")))
      << "nothing to watch";
}

TEST(Through, StepsAreCountedInContainersAndUnderSlurmToo) {
  const std::string runner = " /tmp/yoke-launch-1a/yoke_steps.py train.py";
  const std::string guard = " --progress /tmp/yoke-launch-1a --progress-limit 90s --remove /tmp/yoke-launch-1a";
  const std::string docker = flat(render(Through::kDocker, watched_plan("torchrun"), kOptions)[1].text);
  EXPECT_THAT(docker, HasSubstr(guard + " --container yoke-torchrun -- "));
  EXPECT_THAT(docker, HasSubstr(" --volume /tmp/yoke-launch-1a:/tmp/yoke-launch-1a "));
  EXPECT_THAT(docker, HasSubstr(runner));
  const std::string hosts = flat(render(Through::kDocker, watched_plan("deepspeed"), kOptions)[1].text);
  EXPECT_THAT(hosts, Not(HasSubstr("hostfile:ro"))) << "it lies in the folder that the container has as a whole";
  const std::string apptainer = flat(render(Through::kApptainer, watched_plan("torchrun"), kOptions)[1].text);
  EXPECT_THAT(apptainer, HasSubstr("--bind /dev/infiniband,/tmp/yoke-launch-1a "));
  EXPECT_THAT(apptainer, HasSubstr(runner));
  for (const char* engine : {"torchrun", "nemo", "deepspeed"}) {
    const std::string slurm = flat(slurm_script(watched_plan(engine), kOptions).text);
    EXPECT_THAT(slurm, HasSubstr("\nguard=(/opt/yoke launch guard --floor 8GiB" + guard + " --)\n"));
    EXPECT_THAT(slurm, HasSubstr(std::string("exec \"${guard[@]}\" ") + load_engine(engine).program + " "));
    EXPECT_THAT(slurm, HasSubstr(" /tmp/yoke-launch-1a/yoke_steps.py "));
    EXPECT_THAT(slurm, HasSubstr("cat > /tmp/yoke-launch-1a/yoke_steps.py <<'END'\n"));
  }
  EXPECT_THAT(slurm_script(some_plan("torchrun", two_servers()), kOptions).text, Not(HasSubstr("guard")));
}

TEST(Through, ADockerContainerHasTheMemoryOfTheNodeLessTheFloor) {
  ThroughOptions options = kOptions;
  options.limit = Bytes{112LL << 30};
  const LaunchPlan plan = some_plan("vllm", two_sparks());
  EXPECT_THAT(flat(render(Through::kDocker, plan, options)[0].text),
              HasSubstr(" --memory 114688m --memory-swap 114688m "));
  const auto argv = guard_argv(plan, 0, {.through = Through::kDocker, .limit = options.limit});
  EXPECT_NE(std::find(argv.begin(), argv.end(), "114688m"), argv.end()) << "as it is started over ssh";
  EXPECT_THAT(render(Through::kDocker, plan, kOptions)[0].text, Not(HasSubstr("--memory"))) << "no limit is known";
}

TEST(Through, SlurmHasOneTaskForEachNodeOrEachGpuOfMpi) {
  const std::string torchrun = slurm_script(some_plan("torchrun", two_servers()), kOptions).text;
  EXPECT_THAT(torchrun, HasSubstr("#SBATCH --ntasks-per-node=1\n"));
  EXPECT_THAT(torchrun, HasSubstr("#SBATCH --gpus-per-node=8\n"));
  EXPECT_THAT(torchrun, HasSubstr("--node_rank \"$SLURM_NODEID\""));
  EXPECT_THAT(torchrun, HasSubstr("SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-$((SLURM_CPUS_ON_NODE / 1))}\n"))
      << "all processors of the node, not one";
  EXPECT_THAT(torchrun, HasSubstr("'--note=a b$c'")) << "the user's words are not expanded";
  EXPECT_THAT(torchrun, Not(HasSubstr("--mpi")));
  const std::string trtllm = slurm_script(some_plan("trtllm", two_servers()), kOptions).text;
  EXPECT_THAT(trtllm, HasSubstr("#SBATCH --ntasks-per-node=8\n"));
  EXPECT_THAT(trtllm, HasSubstr("srun --label --kill-on-bad-exit=1 --mpi=pmix "));
}

TEST(Through, ATaskForEachGpuWithALauncherForAllIsRefused) {
  const std::string wrong =
      "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nsrun torchrun --nproc_per_node=8 train.py\n";
  EXPECT_THAT(find_double_launch(wrong), HasSubstr("8 tasks on each node, and each starts torchrun with 8 processes"));
  EXPECT_EQ(find_double_launch("#SBATCH --ntasks-per-node=1\nsrun torchrun --nproc-per-node 8 train.py\n"), "");
  EXPECT_EQ(find_double_launch("#SBATCH --ntasks-per-node=8\nsrun python3 train.py\n"), "");
  EXPECT_EQ(find_double_launch("#SBATCH --ntasks-per-node=8\nsrun torchrun --nproc-per-node=1 train.py\n"), "");
}

TEST(Through, ManifestsAreYamlWithRdmaAndWithoutASecret) {
  for (const char* engine : {"vllm", "sglang", "torchrun", "nemo", "trtllm"}) {
    const std::string text = kubernetes_manifest(some_plan(engine, two_servers()), kOptions).text;
    const std::size_t cut = text.find("---\n");
    const Document document = parse_yaml(text.substr(0, cut), "manifest");
    ASSERT_TRUE(document.find("spec")) << text;
    EXPECT_THAT(text, HasSubstr("rdma/hca: \"1\"")) << engine;
    EXPECT_THAT(text, HasSubstr("nvidia.com/gpu: \"8\"")) << engine;
    EXPECT_THAT(text, HasSubstr("secretKeyRef")) << engine;
  }
  const std::string vllm = kubernetes_manifest(some_plan("vllm", two_servers()), kOptions).text;
  EXPECT_THAT(vllm,
              HasSubstr("\"--node-rank\", \"$(LWS_WORKER_INDEX)\", \"--master-addr\", \"$(LWS_LEADER_ADDRESS)\""));
  EXPECT_THAT(vllm, HasSubstr("startupPolicy: LeaderCreated"));
  EXPECT_THAT(vllm, HasSubstr("VLLM_HOST_IP, value: \"$(POD_IP)\""));
  EXPECT_ERROR(kubernetes_manifest(some_plan("deepspeed", two_servers()), kOptions), ErrorCode::kUnsupported,
               "no form");
}

TEST(Through, UnitsAreWhatSystemdAccepts) {
  if (!is_installed("systemd-analyze")) GTEST_SKIP() << "systemd-analyze is not installed";
  const ScratchDir scratch;
  std::vector<std::string> argv = {"systemd-analyze", "verify", "--recursive-errors=one"};
  for (const char* engine : {"vllm", "llama.cpp", "torchrun"}) {
    for (const auto& file : render_units(Through::kSsh, some_plan(engine, two_sparks()), kOptions)) {
      if (!file.name.ends_with(".service") || !file.name.starts_with("node-2/")) continue;
      argv.push_back(scratch.path() / std::filesystem::path(file.name).filename());
      write_file_atomically(argv.back(), file.text);
    }
  }
  for (const Through way : {Through::kDocker, Through::kApptainer}) {
    const auto files = render_units(way, some_plan("vllm", two_sparks()), kOptions);
    ASSERT_EQ(files.size(), 4U);
    EXPECT_THAT(files[2].text, HasSubstr(way == Through::kDocker ? "\nrun docker run " : "\nrun apptainer exec "));
    EXPECT_THAT(files[2].text, HasSubstr("--follow 192.168.100.1:8000 ")) << "a worker ends with its head";
    argv.push_back(scratch.path() / (through_names()[static_cast<std::size_t>(way)] + ".service"));
    write_file_atomically(argv.back(), files[3].text);
  }
  EXPECT_ERROR(render_units(Through::kSlurm, some_plan("vllm", two_sparks()), kOptions), ErrorCode::kUsage, "--unit");
  ASSERT_EQ(argv.size(), 8U);
  const Outcome outcome = run({.argv = argv});
  EXPECT_TRUE(outcome.ok()) << outcome.err;
  write_file_atomically(argv.back(), read_file(argv.back()) + "MemoryHihg=1\n");
  EXPECT_FALSE(run({.argv = argv}).ok()) << "a wrong key is seen";
}

}  // namespace
}  // namespace yoke::launch
