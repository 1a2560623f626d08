// Where NCCL libraries lie on this machine.
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/probe/nccl_build.h"
#include "yoke/probe/nccl_folders.h"

namespace yoke::probe {
namespace fs = std::filesystem;
namespace {

// Folders as patterns for glob(7); the file in them is always libnccl.so.2.
std::vector<std::string> search_patterns() {
  std::vector<std::string> folders = {"/usr/lib/*-linux-gnu",
                                      "/usr/lib",
                                      "/usr/lib64",
                                      "/usr/local/lib",
                                      "/usr/local/lib64",
                                      "/usr/local/cuda*/lib",
                                      "/usr/local/cuda*/lib64",
                                      "/usr/local/cuda*/targets/*/lib",
                                      "/usr/local/nccl*/lib",
                                      "/opt/nccl*/lib",
                                      "/opt/nccl*/build/lib",
                                      "/opt/nvidia/nccl*/lib"};
  std::vector<std::string> pythons = {"/usr/lib/python3*/dist-packages", "/usr/local/lib/python3*/dist-packages",
                                      "/usr/local/lib/python3*/site-packages", "/opt/*/lib/python3*/site-packages",
                                      "/opt/*/.venv/lib/python3*/site-packages"};
  if (const char* home = std::getenv("HOME"); home && *home == '/') {
    const std::string base = home;
    for (const char* place : {"/nccl*/build/lib", "/*/nccl*/build/lib", "/nccl*/lib"}) folders.push_back(base + place);
    for (const char* place : {"/.local", "/*", "/.venv", "/*/.venv", "/*/venv", "/*conda*/envs/*"}) {
      pythons.push_back(base + place + "/lib/python3*/site-packages");
    }
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* place = std::getenv(variable); place && *place == '/') {
      pythons.push_back(std::string(place) + "/lib/python3*/site-packages");
    }
  }
  for (const std::string& python : pythons) folders.push_back(python + "/nvidia/nccl/lib");
  return folders;
}

Variables environment_variables() {
  Variables variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

}  // namespace

std::vector<fs::path> find_nccl_files() {
  std::set<fs::path> files;
  std::vector<std::string> folders = search_patterns();
  // These are plain paths, not patterns; one with a '*' in its name would only find more.
  for (std::string& named : nccl_folders(DiskTree(), environment_variables())) folders.push_back(std::move(named));
  for (const std::string& folder : folders) {
    glob_t found{};
    if (glob((folder + "/libnccl.so.2").c_str(), 0, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < found.gl_pathc; ++i) {
        std::error_code failure;
        const fs::path real = fs::canonical(found.gl_pathv[i], failure);
        if (!failure && fs::is_regular_file(real, failure)) files.insert(real);
      }
    }
    globfree(&found);
  }
  return {files.begin(), files.end()};
}

std::vector<spec::NcclBuild> find_nccl_builds() {
  std::vector<spec::NcclBuild> builds;
  for (const fs::path& file : find_nccl_files()) {
    const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd || fstat(fd.get(), &status) != 0) {
      builds.push_back({.path = file.native()});  // it is there, and we may not look into it
      continue;
    }
    const auto read = [&](std::uint64_t offset, std::size_t size) {
      std::string bytes(size, '\0');
      const ssize_t count = pread(fd.get(), bytes.data(), size, static_cast<off_t>(offset));
      bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
      return bytes;
    };
    builds.push_back(inspect_nccl(file.native(), static_cast<std::uint64_t>(status.st_size), read));
  }
  return builds;
}

}  // namespace yoke::probe
