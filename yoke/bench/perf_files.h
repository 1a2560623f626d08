// A run as files: the JSON of nccl-tests (-J, version 3 of its form, which nccl-tests' own tools read) and CSV.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/collective_run.h"

namespace yoke::bench {

// `arguments` is the command line as given. The environment, which nccl-tests dumps with every secret in it, stays
// empty.
Document perf_json(const CollectiveRun& run, const std::vector<std::string>& arguments);
std::string perf_csv(const CollectiveRun& run);

// Never overwrites: where the file exists, NAME.0, NAME.1 … are tried, as nccl-tests does. Returns the name taken.
std::filesystem::path write_new_file(const std::filesystem::path& file, const std::string& content);

}  // namespace yoke::bench
