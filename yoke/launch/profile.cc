#include "yoke/launch/profile.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/launch/script_runner.h"

namespace yoke::launch {

std::string_view profile_runner() {
  return "# Runs a script under PyTorch's profiler and writes one trace for each rank beside this file.\n"
         "import os, runpy, socket, sys\n"
         "import torch\n"
         "from torch.profiler import ProfilerActivity, profile\n"
         "\n"
         "folder = os.path.dirname(os.path.abspath(__file__))\n"
         "sys.argv = sys.argv[1:]\n"
         "sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))\n"
         "activities = [ProfilerActivity.CPU]\n"
         "if torch.cuda.is_available():\n"
         "    activities.append(ProfilerActivity.CUDA)\n"
         "profiler = profile(activities=activities, record_shapes=True)\n"
         "profiler.start()\n"
         "try:\n"
         "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
         "finally:\n"
         "    profiler.stop()\n"
         "    rank = os.environ.get('RANK', '0')\n"
         "    profiler.export_chrome_trace(os.path.join(folder, f'{socket.gethostname()}-rank{rank}.json.gz'))\n";
}

std::string profile_runner_path(const std::string& folder) { return folder + "/yoke_profile.py"; }

std::vector<std::string> words_under_profiler(const std::vector<std::string>& rest, const std::string& folder) {
  return with_runner(rest, profile_runner_path(folder),
                     Error(ErrorCode::kUsage, "--profile needs a script that ends in .py after '--'",
                           "a module ('-m name') cannot be profiled so; --profiler nsys can"));
}

std::vector<std::string> argv_under_nsys(const std::vector<std::string>& argv, const std::string& folder,
                                         const std::string& node) {
  std::vector<std::string> words = {"nsys", "profile", "--trace=cuda,nvtx,osrt", "--force-overwrite=true",
                                    fmt::format("--output={}/{}", folder, node)};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

}  // namespace yoke::launch
