// The files of a folder and the pieces that they are compared and copied in.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/files.h"

namespace yoke::sync {

// Large enough that a disk reads it at full speed, small enough that the hashes of a terabyte fit into one message.
inline constexpr std::uint64_t kPieceSize = 8 << 20;

struct FileSize {
  std::string path;  // below the folder
  std::uint64_t size = 0;
  friend bool operator==(const FileSize&, const FileSize&) = default;
};

inline std::uint64_t piece_count(std::uint64_t size) { return (size + kPieceSize - 1) / kPieceSize; }
std::uint64_t piece_length(std::uint64_t size, std::uint64_t piece);

// By path. Links are followed, as the Hub's cache consists of them; hidden files and folders are left out.
std::vector<FileSize> list_files(const std::filesystem::path& folder);

// A path that another machine names: throws Error(kInvalid) where it would lead out of the folder.
void check_inside(const std::string& path);
// The same for all files that `node` lists, and that they are a folder that can be copied: 100,000 files and 64 TiB at
// most. The largest known models have 400 files and 2 TB.
void check_listed(const std::vector<FileSize>& files, const std::string& node);

// A folder while it is being copied: what is complete gets its name afterwards.
std::filesystem::path partial_of(const std::filesystem::path& folder);

// BLAKE2b of 16 bytes in hex.
inline constexpr std::size_t kPieceHashLength = 32;
std::string piece_hash(std::string_view bytes);

// One piece of an open file; throws Error(kInvalid) where the file is shorter.
void read_piece(const UniqueFd& fd, const FileSize& file, std::uint64_t piece, std::string& bytes);

// The hashes of all pieces of each file, with all processors. A file that is missing or of another size has none.
// `on_progress` gets the bytes read so far, from several threads.
std::vector<std::vector<std::string>> hash_files(const std::filesystem::path& folder,
                                                 const std::vector<FileSize>& files,
                                                 const std::function<void(std::uint64_t)>& on_progress = {});

}  // namespace yoke::sync
