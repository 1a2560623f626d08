#include "yoke/check/explain_settings.h"

#include <gtest/gtest.h>

#include "yoke/check/server_cases_testing.h"

namespace yoke::check {
namespace {

std::string verdicts(std::string_view text, const spec::Survey& facts) {
  std::string lines;
  for (const ExplainedSetting& setting : explain_settings(text, "nccl_env.sh", facts)) {
    lines += fmt::format("{} {}={}: {}\n", setting.line, setting.name, setting.value, to_string(setting.verdict));
    EXPECT_EQ(setting.why.empty(), setting.fix.empty()) << setting.name;
  }
  return lines;
}

TEST(ExplainSettings, ReadsShellFilesEnvironmentFilesAndSlurmScripts) {
  EXPECT_EQ(verdicts("#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gpus-per-node=8\n# NCCL_DEBUG=x\n"
                     "export NCCL_NET=IB NCCL_CROSS_NIC='0'  # rails\n\nNCCL_IB_QPS_PER_CONNECTION=4 srun ./a --b=c\n"
                     "mpirun -x NCCL_DEBUG=WARN ./all_reduce_perf\nmine=1\n",
                     made_racks()),
            "2 SBATCH --nodes=2: right\n3 SBATCH --gpus-per-node=8: right\n5 NCCL_NET=IB: right\n"
            "5 NCCL_CROSS_NIC=0: right\n7 NCCL_IB_QPS_PER_CONNECTION=4: right\n8 NCCL_DEBUG=WARN: right\n"
            "9 mine=1: not known\n");
}

TEST(ExplainSettings, WhatTheRulesFindIsWrong) {
  EXPECT_EQ(verdicts("NCCL_IB_HCA==mlx5_0\nNCCL_SOCKET_IFNAME=eth9\nNCCL_IB_DISABLE=1\n", made_racks()),
            "1 NCCL_IB_HCA==mlx5_0: wrong\n2 NCCL_SOCKET_IFNAME=eth9: wrong\n3 NCCL_IB_DISABLE=1: wrong\n");
  EXPECT_EQ(verdicts("NCCL_IB_HCA=mlx5\nNCCL_SOCKET_IFNAME=eno8303\n", made_racks()),
            "1 NCCL_IB_HCA=mlx5: right\n2 NCCL_SOCKET_IFNAME=eno8303: right\n");
}

TEST(ExplainSettings, TheSameLineIsRightOnOneMachineAndWrongOnAnother) {
  EXPECT_EQ(verdicts("NCCL_P2P_DISABLE=1\n", made_racks()), "1 NCCL_P2P_DISABLE=1: wrong\n");
  EXPECT_EQ(verdicts("NCCL_P2P_DISABLE=1\n", made_pair()), "1 NCCL_P2P_DISABLE=1: doubtful\n");
}

TEST(ExplainSettings, AnUnknownNameOfNcclGetsTheNearest) {
  const auto settings = explain_settings("export NCCL_IB_HCAS=mlx5_0\n", "f", made_racks());
  ASSERT_EQ(settings.size(), 1U);
  EXPECT_EQ(settings[0].verdict, SettingVerdict::kDoubtful);
  EXPECT_EQ(settings[0].fix, "did you mean NCCL_IB_HCA?");
}

TEST(ExplainSettings, AnyTextIsRead) {
  for (const char* text :
       {"", "=", "export", "A='", "A=\"b", "#SBATCH ", "#SBATCH =", "A==;;B=", "\xff=\xfe", "x y=z=a b=c"}) {
    EXPECT_NO_THROW(explain_settings(text, "f", made_racks())) << text;
  }
}

}  // namespace
}  // namespace yoke::check
