// Which model folder a user means: by a path, by the name of the model that ships with yoke, by the id of one that
// Hugging Face's tools have downloaded, or by nothing at all.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/file_tree.h"

namespace yoke::weights {

inline constexpr std::string_view kShippedModelName = "nano";

// The small model that ships with yoke: beside the working folder, the build or the installed program.
std::optional<std::filesystem::path> shipped_model();

// The folder that `word` means; the shipped model for an empty one. Throws Error(kNotFound) that repeats the word as it
// was typed and says what it looks like: an id, a GGUF file, a name, a path.
std::filesystem::path find_model_folder(const std::string& word);

// Where Hugging Face's tools keep a downloaded model ("org/name"), or nothing. HF_HUB_CACHE and HF_HOME are followed.
std::optional<std::filesystem::path> find_in_hub_cache(const std::string& id);

// "NVIDIA GPU at 000f:01:00.0" of this machine, if it has one.
std::optional<std::string> find_gpu(const FileTree& machine);

// Arguments with the model's absolute folder in the place of `word`, or before "--" where none was given: what another
// working folder or another home must understand.
std::vector<std::string> with_model_folder(std::vector<std::string> arguments, const std::string& word,
                                           const std::filesystem::path& folder);

}  // namespace yoke::weights
