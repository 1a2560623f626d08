#include "yoke/ops/backends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/ops/ref/backend.h"
#include "yoke/ops/thread_pool.h"

namespace yoke {

std::vector<std::string> backend_names() { return {"ref"}; }

std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options) {
  const int threads = options.threads > 0 ? options.threads : available_processors();
  if (name == "ref") return std::make_unique<RefBackend>(threads);
  throw Error(ErrorCode::kUnsupported, fmt::format("there is no backend '{}'", printable(name, 40)),
              fmt::format("there are: {}", fmt::join(backend_names(), ", ")));
}

}  // namespace yoke
