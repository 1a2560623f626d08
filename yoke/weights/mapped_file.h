// A file mapped for reading, for as long as any tensor looks into it.
//
// What is guaranteed when somebody changes the file meanwhile: replacing it by another (rename) changes nothing for us,
// the old file stays readable. Writing into it is noticed by check_unchanged() (size and time of change), which every
// load calls. Cutting it short between that check and the last read of its bytes cannot be prevented: the kernel then
// raises SIGBUS, and the process ends with a sentence that names the file and with kConflict's exit status.
//
// Any thread may use it.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <span>

#include "yoke/base/files.h"

namespace yoke::weights {

enum class PageCache { kKept, kDropped };

class MappedFile {
 public:
  // Opens a regular file read-only; Error naming it.
  explicit MappedFile(std::filesystem::path file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Error(kConflict) where the file was written to or cut since it was opened.
  void check_unchanged() const;

  // These bytes are needed soon: the disk reads them while the processor does something else.
  void will_need(std::span<const std::byte> part) const;
  // Gives back the memory that holds these bytes of the file: our page tables and, if asked for and where nobody else
  // maps them, the page cache. They stay readable. What stays in the page cache makes the next start fast; on unified
  // memory it competes with the GPU.
  void drop(std::span<const std::byte> part, PageCache cache = PageCache::kDropped) const;

 private:
  struct Pages {
    std::size_t begin, size;  // of the file, from a page's start on
  };
  Pages pages_of(std::span<const std::byte> part) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  struct stat opened_ {};
  std::span<const std::byte> bytes_;
  std::size_t guard_ = 0;  // our place in the table that the SIGBUS handler reads
};

}  // namespace yoke::weights
