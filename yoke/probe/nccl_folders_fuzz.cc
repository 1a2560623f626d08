// Any text as a shell's file: the parser returns, and knows no value that is longer than a path may be.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "yoke/probe/nccl_folders.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& [name, value] : yoke::probe::with_shell_assignments({{"HOME", "/home/a"}}, text)) {
    if (value.size() > 16384) std::abort();
  }
  yoke::MemoryTree files;
  files.add_file("/etc/ld.so.conf", std::string(text));
  yoke::probe::loader_folders(files);
  return 0;
}
