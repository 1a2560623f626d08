#include "yoke/bench/memory_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/progress.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/pinned_threads.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/probe/available_memory.h"
#include "yoke/report/table.h"

namespace yoke {
namespace {

// 64 bytes, as a cache line; the compiler makes of it whatever registers the machine's baseline has.
using Line = std::uint64_t __attribute__((vector_size(64)));

// Four independent sums, so that no addition waits for the one before: the loads are what limits it.
std::uint64_t sum_of(const Line* lines, std::size_t count) {
  Line a{}, b{}, c{}, d{};
  for (std::size_t i = 0; i + 4 <= count; i += 4) {
    a += lines[i];
    b += lines[i + 1];
    c += lines[i + 2];
    d += lines[i + 3];
  }
  const Line all = a + b + c + d;
  std::uint64_t sum = 0;
  for (int i = 0; i < 8; ++i) sum += all[i];
  return sum;
}

struct SourceAndTarget {
  explicit SourceAndTarget(std::size_t bytes)
      : count(bytes / sizeof(Line) & ~std::size_t{3}),
        source(std::make_unique_for_overwrite<Line[]>(count)),
        target(std::make_unique_for_overwrite<Line[]>(count)) {
    for (std::size_t i = 0; i < count; ++i) source[i] = Line{i, i, i, i, i, i, i, i};
    std::memset(static_cast<void*>(target.get()), 0, count * sizeof(Line));
  }
  std::size_t bytes() const { return count * sizeof(Line); }

  std::size_t count;
  std::unique_ptr<Line[]> source;
  std::unique_ptr<Line[]> target;
};

void require_right(bool right, std::string_view what) {
  if (!right)
    throw Error(ErrorCode::kInternal, fmt::format("memory gave wrong data on {}", what), "is the memory broken?");
}

MakeWork make_read(std::size_t bytes) {
  return [bytes](int) {
    const auto blocks = std::make_shared<SourceAndTarget>(bytes);
    return [blocks] {
      const std::uint64_t n = blocks->count;
      require_right(sum_of(blocks->source.get(), n) == (n == 0 ? 0 : 8 * (n * (n - 1) / 2)), "reading");
    };
  };
}

MakeWork make_copy(std::size_t bytes) {
  return [bytes](int) {
    const auto blocks = std::make_shared<SourceAndTarget>(bytes);
    const auto checked = std::make_shared<bool>(false);
    return [blocks, checked] {
      void* const target = blocks->target.get();
      std::memcpy(target, blocks->source.get(), blocks->bytes());
      if (*checked) return;  // the first round is not timed
      require_right(std::memcmp(target, blocks->source.get(), blocks->bytes()) == 0, "copying");
      *checked = true;
    };
  };
}

}  // namespace

Bytes choose_block(Bytes last_cache, std::optional<Bytes> available) {
  constexpr Bytes kLeast{256LL << 20}, kMost{2LL << 30};
  Bytes block = std::clamp(last_cache * std::int64_t{8}, kLeast, kMost);
  if (available) block = std::min(block, *available / std::int64_t{4} / std::int64_t{2});  // source and target
  return block;
}

MemoryRates measure_memory(const MemoryOptions& options) {
  const std::vector<int> cores = options.cores.empty() ? usable_cores() : options.cores;
  MemoryRates result{.last_cache = facts_of_this_machine(DiskTree()).last_cache};
  const Bytes block =
      options.block.value > 0 ? options.block : choose_block(result.last_cache, available_memory(DiskTree()));
  std::vector<std::vector<int>> groups = {{cores.front()}};
  if (cores.size() > 1) groups.push_back(cores);
  Progress progress("measuring memory", static_cast<std::int64_t>(2 * groups.size()));
  for (const bool copies : {false, true}) {
    for (const std::vector<int>& group : groups) {
      progress.update(static_cast<std::int64_t>(result.rates.size()));
      const std::size_t share = static_cast<std::size_t>(block.value) / group.size();
      const PinnedRounds rounds = run_pinned(group, options.rounds, copies ? make_copy(share) : make_read(share));
      result.pinned = result.pinned && rounds.pinned;
      const double lines = static_cast<double>(share / sizeof(Line) & ~std::size_t{3});
      const double bytes = lines * sizeof(Line) * static_cast<double>(group.size()) * (copies ? 2 : 1);
      const SampleStats stats = summarize(rounds.seconds);
      result.rates.push_back({.what = copies ? "copy" : "read",
                              .cores = static_cast<int>(group.size()),
                              .block = block,
                              .best = {bytes / stats.least},
                              .median = {bytes / stats.p50},
                              .low = {bytes / stats.p75},
                              .high = {bytes / stats.p25}});
    }
  }
  return result;
}

std::string memory_text(const MemoryRates& rates) {
  Table table{.title = "Memory bandwidth",
              .columns = {{.header = "what"},
                          {.header = "cores", .align = TextAlign::kRight},
                          {.header = "block", .align = TextAlign::kRight},
                          {.header = "median", .align = TextAlign::kRight},
                          {.header = "best", .align = TextAlign::kRight}}};
  for (const MemoryRate& rate : rates.rates) {
    table.rows.push_back({rate.what, fmt::format("{}", rate.cores), to_string(rate.block),
                          fmt::format("{:.2f} GB/s", rate.median.value / 1e9),
                          fmt::format("{:.2f} GB/s", rate.best.value / 1e9)});
  }
  table.footnotes.push_back("copy counts bytes read and bytes written");
  if (rates.last_cache.value > 0) table.footnotes.push_back("largest cache: " + to_string(rates.last_cache));
  if (!rates.pinned) table.footnotes.push_back("the system did not let threads be pinned to cores");
  return render_text(table);
}

Document to_json(const MemoryRates& rates) {
  Document list = Document::list();
  for (const MemoryRate& rate : rates.rates) {
    list.items.push_back(Document::map({{"what", Document::string(rate.what)},
                                        {"cores", Document::number(std::int64_t{rate.cores})},
                                        {"block", Document::number(rate.block.value)},
                                        {"median", Document::number(rate.median.value)},
                                        {"best", Document::number(rate.best.value)}}));
  }
  return Document::map({{"rates", std::move(list)},
                        {"last_cache", Document::number(rates.last_cache.value)},
                        {"pinned", Document::boolean(rates.pinned)}});
}

RunRecord record_of(const MemoryRates& rates) {
  RunRecord record = new_record("memory", Document::map());
  for (const MemoryRate& rate : rates.rates) {
    record.rows.push_back({.name = fmt::format("{}, {} core{}", rate.what, rate.cores, rate.cores == 1 ? "" : "s"),
                           .size = rate.block.value,
                           .value = rate.median.value / 1e9,
                           .low = rate.low.value / 1e9,
                           .high = rate.high.value / 1e9,
                           .unit = "GB/s"});
    record.summary += fmt::format("{}{} {:.1f}", record.summary.empty() ? "" : ", ", record.rows.back().name,
                                  rate.median.value / 1e9);
  }
  record.summary += " GB/s";
  return record;
}

}  // namespace yoke
