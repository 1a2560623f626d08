// What `yoke launch --profile` adds to a launch: PyTorch's profiler around a script, or Nsight Systems around the
// engine. Engines with a switch of their own (vLLM, SGLang) have it in their descriptions, by {profile}. Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::launch {

enum class Profiler { kNone, kTorch, kNsys };

// The script that runs another under PyTorch's profiler, and its name in the folder of traces.
std::string_view profile_runner();
std::string profile_runner_path(const std::string& folder);
// The words after "--" with the runner before the script. Error(kUsage) where no word ends in ".py".
std::vector<std::string> words_under_profiler(const std::vector<std::string>& rest, const std::string& folder);
// nsys before a command.
std::vector<std::string> argv_under_nsys(const std::vector<std::string>& argv, const std::string& folder,
                                         const std::string& node);

}  // namespace yoke::launch
