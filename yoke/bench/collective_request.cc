#include "yoke/bench/collective_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/cuda/driver.h"
#include "yoke/job/node_channel.h"
#include "yoke/rank/start.h"

namespace yoke::bench {
namespace {

[[noreturn]] void refuse_request(std::string what, std::string hint) {
  throw Error(ErrorCode::kUsage, std::move(what), std::move(hint));
}

bool plain_mpi_reduces(const CollectiveOptions& options) {
  const auto has_type = [](tensor::DType type) {
    return type == tensor::DType::kF32 || type == tensor::DType::kI32 || type == tensor::DType::kI8;
  };
  const auto has_op = [](comm::ReduceOp op) { return op != comm::ReduceOp::kAvg; };
  return std::all_of(options.types.begin(), options.types.end(), has_type) &&
         std::all_of(options.ops.begin(), options.ops.end(), has_op);
}

void check_baseline(const RankRequest& request, const CollectiveOptions& options) {
  if (request.baseline == Baseline::kNothing) return;
  const std::string name = "--compare-with " + to_document(request.baseline).text;
  const std::string transport = "--transport " + to_document(request.transport).text;
  if (options.kind != comm::CollectiveKind::kAllReduce) {
    refuse_request(name + " compares all-reduce only", "leave it out, or measure all-reduce");
  }
  if (request.transport == rank::Transport::kThreads) {
    refuse_request(name + " needs ranks that are processes, and those of --transport threads are not",
                   "leave one of the two out");
  }
  const bool theirs_on_gpus = request.baseline == Baseline::kNccl;
  if (theirs_on_gpus != (transport_of(request) == rank::Transport::kNccl)) {
    refuse_request(fmt::format("{} moves memory of {}, {} that of {}", name, theirs_on_gpus ? "GPUs" : "processors",
                               transport, theirs_on_gpus ? "processors" : "GPUs"),
                   "--compare-with nccl goes with --transport nccl, and only with it");
  }
  if (request.baseline == Baseline::kSocket && rank_count(request) != 2) {
    refuse_request(fmt::format("{} is an exchange between two ranks, not {}", name, rank_count(request)),
                   "--ranks 2, or leave it out");
  }
  if (request.baseline == Baseline::kMpi && !plain_mpi_reduces(options)) {
    refuse_request(name + ": plain MPI reduces float, int32 and int8 by sum, max and min only",
                   "choose among these with -d and -o");
  }
}

// Where rank 0 is to run elsewhere, that machine's ranks say what they lack.
void check_gpus(const RankRequest& request) {
  if (transport_of(request) != rank::Transport::kNccl) return;
  if (request.cluster && !remote::is_this_machine(request.cluster->nodes.front(), 0)) return;
  const auto need = [](const auto& found) {
    if (!found) {
      throw Error(ErrorCode::kUnsupported, "NCCL cannot be measured here: " + found.error().message(),
                  found.error().hint());
    }
  };
  need(cuda::CudaDriver::find());
  need(comm::nccl::NcclLibrary::find());
}

}  // namespace

int rank_count(const RankRequest& request) { return rank::rank_count(request.ranks, request.cluster, 2); }

rank::Transport transport_of(const RankRequest& request) {
  const rank::Transport chosen = rank::between_processes(request.transport);
  if (chosen != rank::Transport::kAuto) return chosen;
  if (request.baseline == Baseline::kNccl) return rank::Transport::kNccl;  // the same memory for both
  // To compare with MPI, something else must carry our data.
  return request.baseline == Baseline::kMpi ? rank::Transport::kDirect : rank::Transport::kAuto;
}

void check_request(const RankRequest& request, const CollectiveOptions& options) {
  check_baseline(request, options);
  check_gpus(request);
}

void check_launched(const job::RankPlace& place, const LaunchedRequest& request) {
  const std::string_view launcher = job::to_string(place.origin);
  if (request.ranks && *request.ranks != place.size) {
    refuse_request(fmt::format("--ranks {}, but {} started {}", *request.ranks, launcher, place.size),
                   "leave --ranks out: the launcher decides");
  }
  if (request.ranks_per_process > 1) {
    refuse_request(fmt::format("-t times -g asks for {} ranks in each process, but each that {} started is one rank",
                               request.ranks_per_process, launcher),
                   "leave -t and -g out, and start as many processes as there are to be ranks");
  }
  if (request.transport == rank::Transport::kThreads) {
    refuse_request(fmt::format("--transport threads makes the ranks itself, but {} started {}", launcher, place.size),
                   "leave it out, or start it without the launcher");
  }
  const bool by_mpi = place.origin == job::RankOrigin::kOpenMpi || place.origin == job::RankOrigin::kMpich ||
                      place.origin == job::RankOrigin::kSlurm;
  const bool mpi_baseline = request.baseline == Baseline::kMpi;
  if (!by_mpi && (mpi_baseline || request.transport == rank::Transport::kMpi)) {
    refuse_request(fmt::format("{} needs ranks that MPI started, not {}",
                               mpi_baseline ? "--compare-with mpi" : "--transport mpi", launcher),
                   "start it by mpirun, or leave it out");
  }
}

}  // namespace yoke::bench
