// A drive in place of the internet: models, container images (files of `docker save`) and packages, with SHA256SUMS at
// its root as `sha256sum` writes it. Everything that is copied is compared with it.
//
//   models/NAME/…   images/*.tar   packages/*.deb   SHA256SUMS
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::launch {

struct DriveFile {
  std::string path;  // below the drive's root: "models/nano/config.json"
  std::string sha256;
  std::uint64_t size = 0;
};

struct Drive {
  std::filesystem::path root;
  std::vector<DriveFile> files;
  std::uint64_t bytes() const;
  std::vector<DriveFile> below(std::string_view folder) const;  // "models"
};

// Error(kInvalid) for names that leave the drive, for lines that are no sums, for files that the list does not name;
// kNotFound where a listed file is missing.
Drive read_drive(const std::filesystem::path& root);

// Copies below `target`, without the drive's first folder: "models/nano/x" to "target/nano/x". A file that is there
// already with the right hash is left alone, so that a second call continues. Error(kInvalid) for other bytes than the
// list says, kUnavailable where the drive cannot be read any more; what was copied stays.
void copy_from_drive(const Drive& drive, const std::vector<DriveFile>& files, const std::filesystem::path& target,
                     const std::function<void(std::uint64_t done)>& on_progress);

}  // namespace yoke::launch
