#include "yoke/ops/backends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/processor_share.h"
#include "yoke/base/text.h"
#include "yoke/ops/cpu/backend.h"
#include "yoke/ops/cpu/instructions.h"
#include "yoke/ops/cuda/backend.h"
#include "yoke/ops/ref/backend.h"

namespace yoke::ops {

std::vector<std::string> backend_names() { return {"cpu", "cuda", "ref"}; }

std::vector<std::string> usable_backends() {
  std::vector<std::string> names = backend_names();
  if (!cuda::cuda_usable()) std::erase(names, "cuda");
  return names;
}

std::optional<std::string> why_no_cuda() {
  const auto usable = cuda::cuda_usable();
  if (usable) return std::nullopt;
  return usable.error().message();
}

std::string resolved_backend(const std::string& name) {
  if (name != "auto") return name;
  static const bool has_gpu = cuda::cuda_usable().has_value();
  return has_gpu ? "cuda" : "cpu";
}

std::unique_ptr<Backend> make_backend(const std::string& given, const BackendOptions& options) {
  const std::string name = resolved_backend(given);
  const double share = processor_share(DiskTree("/"));
  const int threads = options.threads > 0 ? options.threads : threads_for(share);
  const auto core_sharing = threads > share ? SpinPolicy::CoreSharing::kMoreThanCores : options.core_sharing;
  if (name == "cuda") {
    return std::make_unique<cuda::CudaBackend>(
        cuda::CudaBackend::Options{.device = options.device,
                                   .is_exact = options.arithmetic == Arithmetic::kExact,
                                   .host = make_backend("cpu", options)});
  }
  if (name == "cpu") {
    const char* const limit = std::getenv("YOKE_INSTRUCTIONS");
    const std::string instructions = !options.instructions.empty() ? options.instructions
                                     : limit != nullptr            ? limit
                                                                   : "";
    return std::make_unique<cpu::CpuBackend>(
        cpu::CpuBackend::Options{.threads = threads,
                                 .core_sharing = core_sharing,
                                 .is_exact = options.arithmetic == Arithmetic::kExact,
                                 .kernels = &cpu::kernels_named(instructions)});
  }
  if (name == "ref")
    return std::make_unique<ops::ref::RefBackend>(
        ops::ref::RefBackend::Options{.threads = threads, .core_sharing = core_sharing});
  throw Error(ErrorCode::kUnsupported, fmt::format("there is no backend '{}'", printable(name, 40)),
              fmt::format("there are: auto, {}", fmt::join(backend_names(), ", ")));
}

}  // namespace yoke::ops
