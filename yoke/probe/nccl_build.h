// What an NCCL library is, read from its file without running it: version, build id, and for which GPUs it holds code.
// Two builds of one version are different programs (one of pip and one of apt behaved differently under load), and a
// build without code for the GPU fails only when it is used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "yoke/spec/machine.h"

namespace yoke::probe {

// Answers the bytes of a file from an offset, fewer at its end. Such a library has 200 MB, of which a few hundred
// pieces of some bytes are looked at.
using ReadBytes = std::function<std::string(std::uint64_t offset, std::size_t size)>;

// Whatever cannot be found is left out; a file that is no 64-bit ELF file tells nothing. Never throws for its content.
spec::NcclBuild inspect_nccl(std::string path, std::uint64_t size, const ReadBytes& read);

// Every libnccl.so.2 where one usually lies: the system's folders, CUDA's, Python's packages (the system's, the user's,
// and environments below the home folder), builds below the home folder (~/nccl, ~/src/nccl), and what variables and
// the loader's configuration name (nccl_folders.h). Each file once, by its real path, sorted.
std::vector<std::filesystem::path> find_nccl_files();
std::vector<spec::NcclBuild> find_nccl_builds();

}  // namespace yoke::probe
