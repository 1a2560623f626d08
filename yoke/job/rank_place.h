// Which rank this process is, from the environment that its launcher gave it: yoke's own job, Open MPI's mpirun,
// MPICH's mpiexec, srun, torchrun, or a LeaderWorkerSet of Kubernetes.
//
//   if (const auto place = find_rank_place(environment_now())) … place->rank of place->size …
//
// The innermost launcher counts: mpirun inside of an allocation of Slurm decides, not Slurm. Variables that contradict
// each other, or are no numbers, are an Error that names them. Pure but for environment_now().
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace yoke::job {

// Who started this rank.
enum class RankOrigin { kYoke, kOpenMpi, kMpich, kSlurm, kTorchrun, kLeaderWorkerSet };
constexpr auto enum_names(RankOrigin) {
  return std::array{
      std::pair{"yoke", RankOrigin::kYoke},         std::pair{"mpirun", RankOrigin::kOpenMpi},
      std::pair{"mpiexec", RankOrigin::kMpich},     std::pair{"srun", RankOrigin::kSlurm},
      std::pair{"torchrun", RankOrigin::kTorchrun}, std::pair{"leaderworkerset", RankOrigin::kLeaderWorkerSet}};
}
std::string_view to_string(RankOrigin origin);

struct RankPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;     // of this node; local_rank + 1 where the launcher does not say
  std::string node = {};  // empty where the launcher does not say
  RankOrigin origin = RankOrigin::kYoke;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

using Environment = std::map<std::string, std::string>;
Environment environment_now();

std::optional<RankPlace> find_rank_place(const Environment& environment);

}  // namespace yoke::job
