// How much memory stays free beside a model. The engine refuses by it and plans count with it, so that both agree.
#pragma once
#include <algorithm>

#include "yoke/base/units.h"

namespace yoke {

// Where weights lie: the processor's memory, a GPU's own, or one that a GPU shares with the operating system.
enum class MemoryKind { kHost, kGpu, kUnified };

// Of what is available. A machine whose GPU shares its memory hangs instead of failing when that runs out (34 to 12.7
// GiB in 1.5 s were recorded on a DGX Spark), so much stays free there.
constexpr Bytes memory_reserve(Bytes available, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kUnified:
      return std::max(Bytes{std::int64_t{8} << 30}, Bytes{available.value / 25 * 2});
    case MemoryKind::kGpu:
      return Bytes{available.value / 20};
    case MemoryKind::kHost:
      break;
  }
  // The kernel, the page cache that loading goes through, and other programs.
  return Bytes{(std::int64_t{32} << 20) + available.value / 32};
}

}  // namespace yoke
