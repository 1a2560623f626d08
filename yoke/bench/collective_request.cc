#include "yoke/bench/collective_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/comm/nccl/library.h"
#include "yoke/cuda/driver.h"
#include "yoke/job/node_channel.h"
#include "yoke/rank/start.h"
#include "yoke/spec/hardware.h"

namespace yoke {
namespace {

[[noreturn]] void refuse_request(std::string what, std::string hint) {
  throw Error(ErrorCode::kUsage, std::move(what), std::move(hint));
}

bool plain_mpi_reduces(const CollectiveOptions& options) {
  const auto has_type = [](DType type) { return type == DType::kF32 || type == DType::kI32 || type == DType::kI8; };
  const auto has_op = [](ReduceOp op) { return op != ReduceOp::kAvg; };
  return std::all_of(options.types.begin(), options.types.end(), has_type) &&
         std::all_of(options.ops.begin(), options.ops.end(), has_op);
}

void check_beside(const RankRequest& request, const CollectiveOptions& options) {
  if (request.beside == Beside::kNothing) return;
  const std::string name = "--beside " + to_document(request.beside).text;
  const std::string transport = "--transport " + to_document(request.transport).text;
  if (options.kind != CollectiveKind::kAllReduce) {
    refuse_request(name + " compares all-reduce only", "leave it out, or measure all-reduce");
  }
  if (request.transport == Transport::kThreads) {
    refuse_request(name + " needs ranks that are processes, and those of --transport threads are not",
                   "leave one of the two out");
  }
  const bool theirs_on_gpus = request.beside == Beside::kNccl;
  if (theirs_on_gpus != (carrier_of(request) == Carrier::kNccl)) {
    refuse_request(fmt::format("{} moves memory of {}, {} that of {}", name, theirs_on_gpus ? "GPUs" : "processors",
                               transport, theirs_on_gpus ? "processors" : "GPUs"),
                   "--beside nccl goes with --transport nccl, and only with it");
  }
  if (request.beside == Beside::kSocket && rank_count(request) != 2) {
    refuse_request(fmt::format("{} is an exchange between two ranks, not {}", name, rank_count(request)),
                   "--ranks 2, or leave it out");
  }
  if (request.beside == Beside::kMpi && !plain_mpi_reduces(options)) {
    refuse_request(name + ": plain MPI reduces float, int32 and int8 by sum, max and min only",
                   "choose among these with -d and -o");
  }
}

// Where rank 0 is to run elsewhere, that machine's ranks say what they lack.
void check_gpus(const RankRequest& request) {
  if (carrier_of(request) != Carrier::kNccl) return;
  if (request.cluster && !is_this_machine(request.cluster->nodes.front(), 0)) return;
  const auto need = [](const auto& found) {
    if (!found) {
      throw Error(ErrorCode::kUnsupported, "NCCL cannot be measured here: " + found.error().message(),
                  found.error().hint());
    }
  };
  need(CudaDriver::find());
  need(NcclLibrary::find());
}

}  // namespace

int rank_count(const RankRequest& request) { return rank_count(request.ranks, request.cluster, 2); }

Carrier carrier_of(const RankRequest& request) {
  const Carrier chosen = carrier_of(request.transport);
  if (chosen != Carrier::kAuto) return chosen;
  if (request.beside == Beside::kNccl) return Carrier::kNccl;  // the same memory for both
  // To compare with MPI, something else must carry our data.
  return request.beside == Beside::kMpi ? Carrier::kDirect : Carrier::kAuto;
}

void check_request(const RankRequest& request, const CollectiveOptions& options) {
  check_beside(request, options);
  check_gpus(request);
}

void check_launched(const RankPlace& place, const LaunchedRequest& request) {
  const std::string_view launcher = to_string(place.origin);
  if (request.ranks && *request.ranks != place.size) {
    refuse_request(fmt::format("--ranks {}, but {} started {}", *request.ranks, launcher, place.size),
                   "leave --ranks out: the launcher decides");
  }
  if (request.ranks_per_process > 1) {
    refuse_request(fmt::format("-t times -g asks for {} ranks in each process, but each that {} started is one rank",
                               request.ranks_per_process, launcher),
                   "leave -t and -g out, and start as many processes as there are to be ranks");
  }
  if (request.transport == Transport::kThreads) {
    refuse_request(fmt::format("--transport threads makes the ranks itself, but {} started {}", launcher, place.size),
                   "leave it out, or start it without the launcher");
  }
  const bool by_mpi =
      place.origin == RankOrigin::kOpenMpi || place.origin == RankOrigin::kMpich || place.origin == RankOrigin::kSlurm;
  const bool beside_mpi = request.beside == Beside::kMpi;
  if (!by_mpi && (beside_mpi || request.transport == Transport::kMpi)) {
    refuse_request(fmt::format("{} needs ranks that MPI started, not {}",
                               beside_mpi ? "--beside mpi" : "--transport mpi", launcher),
                   "start it by mpirun, or leave it out");
  }
}

std::optional<LinkLimit> limit_of(const Cluster& cluster) {
  const int halves = std::max(1, static_cast<int>(cluster.nodes.front().halves.size()));
  if (cluster.fabric && cluster.fabric->half_rate) {
    return LinkLimit{.half_rate = *cluster.fabric->half_rate, .halves = halves, .source = "the cluster file"};
  }
  const Hardware* hardware = cluster.hardware ? find_hardware(*cluster.hardware) : nullptr;
  if (!hardware || cluster.lab) return std::nullopt;
  return LinkLimit{.half_rate = hardware->half_rate, .halves = halves, .source = "the catalogue"};
}

}  // namespace yoke
