// Libraries that may be damaged or hostile: whatever the bytes, looking at them ends, within the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/probe/nccl_build.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const yoke::spec::NcclBuild build =
      yoke::probe::inspect_nccl("fuzz", size, [&](std::uint64_t offset, std::size_t count) {
        return offset >= size ? std::string() : std::string(file.substr(offset, count));
      });
  YOKE_CHECK(build.size == yoke::Bytes{static_cast<std::int64_t>(size)}, "the size has changed");
  return 0;
}
