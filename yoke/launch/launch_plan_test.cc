#include "yoke/launch/launch_plan.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/launch/launch_cases_testing.h"

namespace yoke::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

LaunchPlan plan_for(const std::string& engine, const LaunchCase& launch_case, LaunchOptions options = {}) {
  if (options.model.empty()) options.model = "/models/m";
  if (load_engine(engine).rest == "required" && options.rest.empty()) options.rest = {"train.py"};
  return plan_launch(load_engine(engine), options, launch_case.nodes, {});
}

// The command of a node's last process as one line.
std::string line_of(const LaunchPlan& plan, std::size_t node) {
  const auto processes = plan.of_node(node);
  return processes.empty() ? "" : fmt::format("{}", fmt::join(processes.back()->argv, " "));
}

std::string value_of(const LaunchPlan& plan, std::size_t node, const std::string& name) {
  for (const spec::FabricPin& pin : plan.environment[node]) {
    if (pin.name == name) return pin.value;
  }
  return "(not set)";
}

TEST(LaunchPlan, VllmOnTwoSparksSharesEachLayerOverTheFirstRail) {
  const LaunchPlan plan = plan_for("vllm", two_sparks());
  EXPECT_EQ(
      line_of(plan, 0),
      "vllm serve /models/m --nnodes 2 --node-rank 0 --master-addr 192.168.100.1 --master-port 29501 "
      "--tensor-parallel-size 2 --gpu-memory-utilization 0.88 --max-num-batched-tokens 8192 --host 0.0.0.0 --port "
      "8000");
  EXPECT_EQ(line_of(plan, 1),
            "vllm serve /models/m --nnodes 2 --node-rank 1 --master-addr 192.168.100.1 --master-port 29501 "
            "--tensor-parallel-size 2 --gpu-memory-utilization 0.88 --max-num-batched-tokens 8192 --headless");
  EXPECT_EQ(value_of(plan, 0, "VLLM_HOST_IP"), "192.168.100.1");
  EXPECT_EQ(value_of(plan, 1, "VLLM_HOST_IP"), "192.168.100.2") << "each node its own";
  EXPECT_EQ(value_of(plan, 1, "NCCL_IB_HCA"), "=rocep1s0f0:1,roceP2p1s0f0:1");
  EXPECT_EQ(plan.image, "nvcr.io/nvidia/vllm:26.05-py3");
  EXPECT_EQ(plan.processes.front().node, 1U) << "workers first, the head last";
}

TEST(LaunchPlan, ThreeSparksInARingAreStagesThatMeetOverManagement) {
  const LaunchPlan plan = plan_for("vllm", three_sparks());
  EXPECT_THAT(line_of(plan, 2), HasSubstr("--nnodes 3 --node-rank 2 --master-addr 10.0.0.1 "));
  EXPECT_THAT(line_of(plan, 2), HasSubstr("--pipeline-parallel-size 3"));
  EXPECT_THAT(line_of(plan, 2), Not(HasSubstr("--tensor-parallel-size"))) << "three do not divide the heads";
  EXPECT_EQ(value_of(plan, 2, "VLLM_HOST_IP"), "10.0.0.3");
  EXPECT_EQ(value_of(plan, 2, "NCCL_IB_MERGE_NICS"), "0");
  EXPECT_EQ(value_of(plan, 2, "NCCL_IB_HCA"), "=rocep1s0f0:1,roceP2p1s0f0:1,rocep1s0f1:1,roceP2p1s0f1:1");
}

TEST(LaunchPlan, FourSparksOnASwitchAndTwoServers) {
  EXPECT_THAT(line_of(plan_for("vllm", four_sparks()), 3), HasSubstr("--nnodes 4 --node-rank 3 "));
  EXPECT_THAT(line_of(plan_for("vllm", four_sparks()), 3), HasSubstr("--tensor-parallel-size 4"));
  const LaunchPlan servers = plan_for("vllm", two_servers());
  EXPECT_THAT(line_of(servers, 1), HasSubstr("--tensor-parallel-size 8 --pipeline-parallel-size 2"));
  EXPECT_THAT(line_of(servers, 1), HasSubstr("--gpu-memory-utilization 0.92"));
  EXPECT_THAT(line_of(servers, 1), Not(HasSubstr("--max-num-batched-tokens"))) << "only where memory is unified";
  EXPECT_THAT(value_of(servers, 1, "NCCL_IB_HCA"), HasSubstr("=mlx5_0:1,"));
  EXPECT_EQ(value_of(servers, 1, "NCCL_NET_GDR_LEVEL"), "PXB");
  EXPECT_EQ(value_of(servers, 1, "NCCL_SOCKET_IFNAME"), "=eno8303");
  EXPECT_EQ(value_of(servers, 1, "VLLM_HOST_IP"), "10.0.0.2");
  const LaunchPlan copies = plan_for("vllm", two_servers(), {.tensor = 8, .replicas = 2});
  EXPECT_THAT(line_of(copies, 0), HasSubstr("--tensor-parallel-size 8 --data-parallel-size 2"));
}

TEST(LaunchPlan, SglangHasTheSameLineOnAllNodesAndItsOwnAddress) {
  const LaunchPlan plan = plan_for("sglang", two_sparks(), {.context = 32768, .sequences = 8});
  EXPECT_EQ(line_of(plan, 1),
            "python3 -m sglang.launch_server --model-path /models/m --tp-size 2 --dist-init-addr 192.168.100.1:20000 "
            "--nnodes 2 --node-rank 1 --mem-fraction-static 0.80 --context-length 32768 --max-running-requests 8 "
            "--attention-backend flashinfer --host 0.0.0.0 --port 30000");
  EXPECT_EQ(value_of(plan, 1, "SGLANG_HOST_IP"), "192.168.100.2");
}

TEST(LaunchPlan, TrtllmIsOneMpirunOnTheHead) {
  const LaunchPlan plan = plan_for("trtllm", two_servers());
  EXPECT_TRUE(plan.of_node(1).empty());
  EXPECT_THAT(line_of(plan, 0),
              HasSubstr("mpirun -np 16 --hostfile /tmp/yoke-launch/mpi_hostfile --allow-run-as-root -x "
                        "NCCL_IB_HCA"));
  ASSERT_EQ(plan.files.size(), 1U);
  EXPECT_EQ(plan.files[0].text, "10.0.0.1 slots=8\n10.0.0.2 slots=8\n");
  EXPECT_THAT(line_of(plan, 0), HasSubstr("trtllm-llmapi-launch trtllm-serve /models/m --tp_size 8 --pp_size 2"));
}

TEST(LaunchPlan, MpirunLogsInAsTheClusterFileSays) {
  LaunchCase servers = two_servers();
  servers.nodes[1].login_address = "gpu-2.example.org";
  servers.nodes[1].login_user = "ops";
  servers.nodes[1].login_port = 2222;
  servers.nodes[0].login_address = "gpu-1.example.org";  // mpirun runs there: it must know itself
  EXPECT_EQ(plan_for("trtllm", servers).files.at(0).text,
            "10.0.0.1 slots=8\ngpu-2.example.org slots=8 username=ops port=2222\n");
}

TEST(LaunchPlan, TheHubIsNotAskedForAModelInAFolder) {
  for (const char* engine : {"vllm", "vllm-ray", "sglang", "trtllm"}) {
    EXPECT_EQ(value_of(plan_for(engine, two_sparks()), 0, "HF_HUB_OFFLINE"), "1") << engine;
    EXPECT_EQ(value_of(plan_for(engine, two_sparks(), {.model = "org/m"}), 0, "HF_HUB_OFFLINE"), "(not set)") << engine;
  }
  const LaunchPlan own = plan_for("vllm", two_sparks(), {.environment = {{"HF_HUB_OFFLINE", "0", "Yours."}}});
  EXPECT_EQ(value_of(own, 0, "HF_HUB_OFFLINE"), "0") << "a draft model may come from the Hub";
}

TEST(LaunchPlan, TorchrunUsesTheStaticRendezvous) {
  const LaunchPlan plan = plan_for("torchrun", two_servers(), {.rest = {"train.py", "--epochs", "1"}});
  EXPECT_EQ(line_of(plan, 1),
            "torchrun --nnodes 2 --nproc_per_node 8 --node_rank 1 --master_addr 10.0.0.1 --master_port 29500 train.py "
            "--epochs 1");
  EXPECT_THAT(line_of(plan, 1), Not(HasSubstr("rdzv"))) << "c10d hangs with an address of the fabric";
  EXPECT_THAT(line_of(plan_for("nemo", two_servers(), {.rest = {"--recipe", "r"}}), 0),
              HasSubstr("--master_port 29500 scripts/training/run_recipe.py --recipe r"));
}

TEST(LaunchPlan, DeepspeedGetsAHostfileAndNoFanOutOfItsOwn) {
  const LaunchPlan plan = plan_for("deepspeed", two_servers());
  ASSERT_EQ(plan.files.size(), 1U);
  EXPECT_EQ(plan.files[0].text, "10.0.0.1 slots=8\n10.0.0.2 slots=8\n");
  EXPECT_THAT(line_of(plan, 1), HasSubstr("deepspeed --no_ssh --node_rank 1 --hostfile " + plan.files[0].path));
}

TEST(LaunchPlan, LlamaCppStartsWorkersFirstAndTheHeadWaitsForThem) {
  const LaunchPlan plan = plan_for("llama.cpp", three_sparks(), {.model = "/models/m.gguf"});
  EXPECT_EQ(line_of(plan, 1), "ggml-rpc-server -H 10.0.0.2 -p 50052 -c");
  EXPECT_THAT(line_of(plan, 0),
              HasSubstr("llama-server -m /models/m.gguf --rpc 10.0.0.2:50052,10.0.0.3:50052 -ngl 99"));
  EXPECT_EQ(plan.of_node(0).back()->wait_for, (std::vector<std::string>{"10.0.0.2:50052", "10.0.0.3:50052"}));
  EXPECT_EQ(plan.processes.back().node, 0U);
}

TEST(LaunchPlan, RayRunsOnAllNodesAndVllmOnTheHead) {
  const LaunchPlan plan = plan_for("vllm-ray", two_sparks());
  const auto head = plan.of_node(0);
  ASSERT_EQ(head.size(), 2U);
  EXPECT_TRUE(head[0]->step);
  EXPECT_THAT(line_of(plan, 0), HasSubstr("--distributed-executor-backend ray --tensor-parallel-size 2"));
  EXPECT_THAT(line_of(plan, 0), Not(HasSubstr("--nnodes"))) << "vLLM refuses it with Ray";
  EXPECT_THAT(line_of(plan, 1), HasSubstr("ray start --block --address 192.168.100.1:6379"));
}

TEST(LaunchPlan, YokeServesWithARankOnEveryNode) {
  const LaunchPlan plan = plan_for("yoke", two_sparks(), {.model = "/models/nano/"});
  EXPECT_EQ(line_of(plan, 1), "yoke serve /models/nano/ --host 0.0.0.0 --port 8000 --name nano");
  EXPECT_EQ(plan.api_model(), "nano");
  EXPECT_EQ(plan_for("vllm", two_sparks()).api_model(), "/models/m") << "vLLM's API calls it by its path";
}

TEST(LaunchPlan, AnImageIsSplitByHeadsInsideOfANodeAndByKeysBetweenNodes) {
  LaunchOptions options{.model = "/models/flux", .rest = {"examples/flux_example.py", "--prompt", "a fjord"}};
  EXPECT_EQ(line_of(plan_for("xdit", two_servers(), options), 1),
            "torchrun --nnodes 2 --nproc_per_node 8 --node_rank 1 --master_addr 10.0.0.1 --master_port 29500 "
            "examples/flux_example.py --prompt a fjord --model /models/flux --ulysses_degree 8 --ring_degree 2");
  EXPECT_TRUE(plan_for("xdit", two_servers(), options).notes.empty());
  options.rest.emplace_back("--pipefusion_parallel_degree=2");
  const LaunchPlan staged = plan_for("xdit", two_sparks(), options);
  ASSERT_EQ(staged.notes.size(), 1U);
  EXPECT_THAT(staged.notes[0], HasSubstr("memory is halved, time is not"));
  EXPECT_EQ(line_of(plan_for("sglang-generate", two_sparks(), {.model = "/models/flux", .rest = {"--prompt", "x"}}), 1),
            "sglang generate --model-path /models/flux --num-gpus 1 --seed 1 --save-output --prompt x");
  const LaunchPlan comfy = plan_for("comfyui", two_sparks());
  EXPECT_TRUE(comfy.of_node(1).empty());
  EXPECT_EQ(line_of(comfy, 0), "python3 main.py --listen 0.0.0.0 --port 8188");
}

TEST(LaunchPlan, AProfilerIsASwitchOfTheEngineOrARunnerBeforeTheScript) {
  const LaunchOptions options{.rest = {"--max_restarts", "1", "train.py", "--epochs", "1"},
                              .profiler = Profiler::kTorch,
                              .profile = "/var/tmp/p"};
  const LaunchPlan torchrun = plan_for("torchrun", two_sparks(), options);
  EXPECT_THAT(line_of(torchrun, 1), HasSubstr("--max_restarts 1 /var/tmp/p/yoke_profile.py train.py --epochs 1"));
  ASSERT_EQ(torchrun.files.size(), 1U);
  EXPECT_EQ(torchrun.files[0].path, "/var/tmp/p/yoke_profile.py");
  EXPECT_THAT(line_of(plan_for("vllm", two_sparks(), {.profiler = Profiler::kTorch, .profile = "/var/tmp/p"}), 1),
              HasSubstr("--profiler-config.profiler=torch --profiler-config.torch_profiler_dir=/var/tmp/p --headless"));
  EXPECT_THAT(
      line_of(plan_for("torchrun", two_sparks(),
                       {.rest = {"-m", "pkg"}, .profiler = Profiler::kNsys, .profile = "/var/tmp/p"}),
              1),
      HasSubstr("nsys profile --trace=cuda,nvtx,osrt --force-overwrite=true --output=/var/tmp/p/node-2 torchrun "));
  EXPECT_ERROR(plan_for("torchrun", two_sparks(), {.rest = {"-m", "pkg"}, .profiler = Profiler::kTorch}),
               ErrorCode::kUsage, "ends in .py");
  EXPECT_ERROR(plan_for("llama.cpp", two_sparks(), {.profiler = Profiler::kTorch}), ErrorCode::kUnsupported,
               "no switch for PyTorch's profiler");
}

TEST(LaunchPlan, OneMachineAloneHasNoNodesInItsLineAndNoPins) {
  LaunchCase one = two_sparks();
  one.nodes.resize(1);
  const LaunchPlan plan = plan_for("vllm", one);
  EXPECT_THAT(line_of(plan, 0), Not(HasSubstr("--nnodes")));
  EXPECT_EQ(value_of(plan, 0, "NCCL_IB_HCA"), "(not set)");
}

TEST(LaunchPlan, TheUsersVariablesWinAndThePlanSetsTheMemory) {
  const LaunchPlan plan = plan_launch(
      load_engine("vllm"), {.model = "m", .environment = {{"NCCL_NET", "Socket", "Yours."}}}, two_sparks().nodes,
      PlannedShape{
          .tensor = 1, .pipeline = 2, .heads = 64, .context_max = 40960, .sequences_max = 100, .memory_share = 0.8377});
  EXPECT_EQ(value_of(plan, 0, "NCCL_NET"), "Socket");
  EXPECT_THAT(line_of(plan, 0), HasSubstr("--pipeline-parallel-size 2 --gpu-memory-utilization 0.83 --max-model-len "
                                          "40960 --max-num-seqs 16"));
}

TEST(LaunchPlan, RefusesWhatCannotBe) {
  EXPECT_ERROR(plan_for("vllm", two_sparks(), {.tensor = 4}), ErrorCode::kUsage, "is 4 GPUs, but the nodes have 2");
  EXPECT_ERROR(
      plan_launch(load_engine("vllm"), {.model = "m", .tensor = 3}, three_sparks().nodes, PlannedShape{.heads = 64}),
      ErrorCode::kUsage, "64 attention heads cannot be split over tensor parallelism 3");
  EXPECT_ERROR(plan_launch(load_engine("vllm"), {}, two_sparks().nodes, {}), ErrorCode::kUsage, "vllm needs a model");
  EXPECT_ERROR(plan_launch(load_engine("torchrun"), {}, two_sparks().nodes, {}), ErrorCode::kUsage, "after '--'");
  LaunchCase lost = two_sparks();
  lost.nodes[1].own_ip.clear();
  EXPECT_ERROR(plan_for("vllm", lost), ErrorCode::kInvalid, "where node-2 meets the others is not known");
  LaunchCase uneven = two_servers();
  uneven.nodes[1].gpus = 4;
  EXPECT_ERROR(plan_for("vllm", uneven, {.tensor = 12}), ErrorCode::kInvalid, "node-2 has 4 GPUs, node-1 has 8");
}

}  // namespace
}  // namespace yoke::launch
