// Cases of the rules about NCCL logs: lines that a job printed.
#pragma once
#include <string>
#include <vector>

#include "yoke/check/machine_cases_testing.h"
#include "yoke/check/nccl_log.h"

namespace yoke::check {

// Lines of spark-a, after those of other cases.
inline Break says(std::vector<std::string> lines) {
  return [lines = std::move(lines)](spec::Survey& facts) {
    if (!facts.log) facts.log = spec::NcclLog{};
    for (const std::string& line : lines) {
      const bool bare = line.starts_with('#') || line.starts_with(' ');
      add_nccl_log(*facts.log, (bare ? "" : "spark-a:10:10 [0] NCCL ") + line + "\n");
    }
  };
}

inline Break nccl_tests_of_two_sparks(const std::string& row) {
  return says({"#  Rank  0 Group  0 Pid   4711 on    spark-a device  0 [000f:01:00] NVIDIA GB10",
               "#  Rank  1 Group  0 Pid   4712 on    spark-b device  0 [000f:01:00] NVIDIA GB10", row});
}

inline std::vector<RuleCase> log_cases() {
  constexpr const char* kA = "spark-a";
  return {
      {"nccl-failed", "OutOfMemory", says({"WARN Cuda failure 2 'out of memory'"}), kA},
      {"nccl-tcp", "Channel", says({"INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"}), kA},
      {"nccl-tcp", "ARingOfNccl24", says({"INFO Ring 00 : 35 -> 34 [send] via NET/Socket/0"}), kA},
      {"nccl-ring-collapse", "Listeners", says({"INFO ListenerRouting advertised=2 observed=4"}), ""},
      {"nccl-connect", "QueuePair", says({"WARN Call to ibv_modify_qp failed with error Invalid argument"}), kA},
      {"nccl-slow", "DegradedPair",
       nccl_tests_of_two_sparks(
           "  134217728  33554432  float  sum  -1  47391.1  2.83  2.83  0  47345.4  2.83  2.83  0"),
       ""},
      {"nccl-log-cut", "AfterTheStart", says({"INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId f01000 - Init START"}),
       ""},
      {"nccl-one-rail", "OneDevice",
       says({"INFO NET/IB : Using [0]rocep1s0f1:1/RoCE [RO]; OOB enP7s7:192.168.1.15<0>"}), kA, "rocep1s0f1"},
      {"nccl-gid-link-local", "Gid0",
       says({"INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
             "INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 5 GID 0 (80FE/1064A8C0FFFF0000)"}),
       kA, "mlx5_0"},
      {"nccl-mtu-small", "Mtu1500",
       says({"INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
             "INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000)"}),
       kA, "mlx5_0"},
  };
}

}  // namespace yoke::check
