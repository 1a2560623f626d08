#include "yoke/job/rank_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::job {
namespace {

// More ranks than any machine has: beyond it a number is junk.
constexpr int kMaxSize = 1'000'000;

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool has(const std::string& name) const { return environment_.contains(name); }

  std::string text(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  }

  int number(const std::string& name, std::string_view launcher) const {
    const auto found = environment_.find(name);
    if (found == environment_.end()) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} of {} is missing in the environment", name, launcher),
                  "start this program by the launcher itself, or unset its other variables");
    }
    const std::string& value = found->second;
    int parsed = -1;
    const auto [rest, failure] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (failure != std::errc() || rest != value.data() + value.size() || parsed < 0 || parsed > kMaxSize) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} is '{}', which is no rank or count", name, printable(value, 40)),
                  "unset it, or set it as the launcher does");
    }
    return parsed;
  }
  int number_or(const std::string& name, int otherwise, std::string_view launcher) const {
    return has(name) ? number(name, launcher) : otherwise;
  }

 private:
  const Environment& environment_;
};

// "2,1" or "2(x3),1": how many tasks each node of a Slurm step has; that of node `index`, or nothing.
std::optional<int> tasks_of_node(const std::string& list, int index) {
  int first = 0;
  for (const std::string& group : split(list, ',')) {
    int tasks = 0;
    int times = 1;
    const char* const end = group.data() + group.size();
    const auto [rest, failure] = std::from_chars(group.data(), end, tasks);
    if (failure != std::errc()) return std::nullopt;
    if (rest != end) {
      if (!std::string_view(rest, end).starts_with("(x")) return std::nullopt;
      if (std::from_chars(rest + 2, end, times).ec != std::errc()) return std::nullopt;
    }
    if (index < first + times) return tasks;
    first += times;
  }
  return std::nullopt;
}

RankPlace open_mpi_place(const Reader& reader) {
  constexpr std::string_view kName = "mpirun";
  return {.rank = reader.number("OMPI_COMM_WORLD_RANK", kName),
          .size = reader.number("OMPI_COMM_WORLD_SIZE", kName),
          .local_rank = reader.number_or("OMPI_COMM_WORLD_LOCAL_RANK", 0, kName),
          .local_size = reader.number_or("OMPI_COMM_WORLD_LOCAL_SIZE",
                                         reader.number_or("OMPI_COMM_WORLD_LOCAL_RANK", 0, kName) + 1, kName),
          .origin = RankOrigin::kOpenMpi};
}

RankPlace mpich_place(const Reader& reader) {
  constexpr std::string_view kName = "mpiexec";
  return {.rank = reader.number("PMI_RANK", kName),
          .size = reader.number("PMI_SIZE", kName),
          .local_rank = reader.number_or("MPI_LOCALRANKID", 0, kName),
          .local_size = reader.number_or("MPI_LOCALNRANKS", reader.number_or("MPI_LOCALRANKID", 0, kName) + 1, kName),
          .origin = RankOrigin::kMpich};
}

RankPlace slurm_place(const Reader& reader) {
  constexpr std::string_view kName = "srun";
  RankPlace place{
      .rank = reader.number("SLURM_PROCID", kName),
      // A step may have fewer tasks than its job.
      .size = reader.number(reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", kName),
      .local_rank = reader.number_or("SLURM_LOCALID", 0, kName),
      .node = reader.text("SLURMD_NODENAME"),
      .origin = RankOrigin::kSlurm};
  const auto tasks =
      tasks_of_node(reader.text("SLURM_STEP_TASKS_PER_NODE"), reader.number_or("SLURM_NODEID", 0, kName));
  place.local_size = tasks.value_or(place.local_rank + 1);
  if (reader.has("PMIX_RANK") && reader.number("PMIX_RANK", kName) != place.rank) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("SLURM_PROCID is rank {}, but PMIX_RANK is {}", place.rank, reader.text("PMIX_RANK")),
                "unset one of them");
  }
  return place;
}

RankPlace torchrun_place(const Reader& reader) {
  constexpr std::string_view kName = "torchrun";
  return {.rank = reader.number("RANK", kName),
          .size = reader.number("WORLD_SIZE", kName),
          .local_rank = reader.number_or("LOCAL_RANK", 0, kName),
          .local_size = reader.number_or("LOCAL_WORLD_SIZE", reader.number_or("LOCAL_RANK", 0, kName) + 1, kName),
          .origin = RankOrigin::kTorchrun};
}

// One process for each pod.
RankPlace leader_worker_set_place(const Reader& reader) {
  constexpr std::string_view kName = "LeaderWorkerSet";
  return {.rank = reader.number("LWS_WORKER_INDEX", kName),
          .size = reader.number("LWS_GROUP_SIZE", kName),
          .origin = RankOrigin::kLeaderWorkerSet};
}

RankPlace yoke_place(const Reader& reader) {
  constexpr std::string_view kName = "yoke";
  return {.rank = reader.number("YOKE_RANK", kName),
          .size = reader.number("YOKE_SIZE", kName),
          .local_rank = reader.number("YOKE_LOCAL_RANK", kName),
          .local_size = reader.number("YOKE_LOCAL_SIZE", kName),
          .node = reader.text("YOKE_NODE"),
          .origin = RankOrigin::kYoke};
}

RankPlace checked(const RankPlace& place) {
  const auto refuse = [&](std::string_view what, int number, std::string_view of, int limit) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} gives {} {} of {} {}", to_string(place.origin), what, number, of, limit),
                "its variables contradict each other: were some set by hand?");
  };
  if (place.rank >= place.size) refuse("rank", place.rank, "a size of", place.size);
  if (place.local_rank >= place.local_size) refuse("local rank", place.local_rank, "a local size of", place.local_size);
  if (place.local_size > place.size) refuse("a local size of", place.local_size, "a size of", place.size);
  return place;
}

}  // namespace

std::string_view to_string(RankOrigin origin) {
  for (const auto& [name, value] : enum_names(origin)) {
    if (value == origin) return name;
  }
  return "?";
}

Environment environment_now() {
  Environment all;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

std::optional<RankPlace> find_rank_place(const Environment& environment) {
  const Reader reader(environment);
  // Our own job sets the variables of others too, so it comes first. Then those that run inside of an allocation.
  if (reader.has("YOKE_RANK")) return checked(yoke_place(reader));
  if (reader.has("OMPI_COMM_WORLD_RANK")) return checked(open_mpi_place(reader));
  if (reader.has("TORCHELASTIC_RUN_ID")) return checked(torchrun_place(reader));
  // Slurm sets PMI_RANK too, with --mpi=pmi2: a step is told by its own variables.
  if (reader.has("SLURM_STEP_ID") && reader.has("SLURM_PROCID") && !reader.has("MPI_LOCALRANKID")) {
    return checked(slurm_place(reader));
  }
  if (reader.has("PMI_RANK")) return checked(mpich_place(reader));
  // RANK alone is too common a name: it counts only with its partner.
  if (reader.has("RANK") && reader.has("WORLD_SIZE")) return checked(torchrun_place(reader));
  if (reader.has("LWS_WORKER_INDEX")) return checked(leader_worker_set_place(reader));
  return std::nullopt;
}

}  // namespace yoke::job
