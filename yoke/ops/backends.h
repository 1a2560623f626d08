// The table of backends: which there are in this program, and how one is made.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "yoke/ops/backend.h"

namespace yoke {

std::vector<std::string> backend_names();

struct BackendOptions {
  int threads = 0;  // 0: one for each processor that this process may run on
};
// Error(kUnsupported) names those there are.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options = {});

}  // namespace yoke
