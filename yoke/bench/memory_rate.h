// How fast this machine's memory is, in bytes that really cross between memory and cores: read (a sum over a block) and
// copy (bytes read plus bytes written), by one core and by all that we may use. Blocks are far larger than the caches.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/bench/run_record.h"

namespace yoke::bench {

struct MemoryOptions {
  Bytes block{};    // of all threads together, for each of source and target; 0: chosen from the caches
  int rounds = 15;  // timed, of which best and median are reported
  std::vector<int> cores = {};
  bool with_copy = true;  // else reading alone is measured
};

struct MemoryRate {
  std::string what;  // "read", "copy"
  int cores = 1;
  Bytes block;
  BytesPerSecond best;
  BytesPerSecond median;
  BytesPerSecond low;  // quartiles
  BytesPerSecond high;
};

struct MemoryRates {
  std::vector<MemoryRate> rates;
  Bytes last_cache;
  bool pinned = true;
};

// Eight times the last cache, at least 256 MiB and at most 2 GiB, and never more than a quarter of what is available.
Bytes choose_block(Bytes last_cache, std::optional<Bytes> available);

// What was read and copied is checked; a wrong byte is an Error(kInternal).
MemoryRates measure_memory(const MemoryOptions& options);

std::string memory_text(const MemoryRates& rates);
Document to_json(const MemoryRates& rates);
RunRecord record_of(const MemoryRates& rates);

}  // namespace yoke::bench
