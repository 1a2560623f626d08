#include "yoke/bench/memory_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/progress.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/pinned_threads.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/ops/cpu/instructions.h"
#include "yoke/ops/cpu/panels.h"
#include "yoke/probe/available_memory.h"
#include "yoke/report/table.h"

namespace yoke::bench {
namespace {

constexpr std::size_t kLineWords = 8;  // 64 bytes, a cache line
constexpr std::size_t kLineBytes = kLineWords * sizeof(std::uint64_t);
constexpr std::size_t kLineStep = 8;  // lines that the kernels read at a time

// So much at a time that Ctrl-C is heard within milliseconds, and so much that asking costs nothing.
constexpr std::size_t kPieceLines = (std::size_t{32} << 20) / kLineBytes;

template <class Function>
void in_pieces(std::size_t count, Function&& function) {
  for (std::size_t first = 0; first < count; first += kPieceLines) {
    throw_if_interrupted();
    function(first, std::min(kPieceLines, count - first));
  }
}

// A block whose line i holds i eight times; in huge pages where there are some, as weights are.
struct MemoryBlock {
  explicit MemoryBlock(std::size_t bytes)
      : count(bytes / kLineBytes / kLineStep * kLineStep), memory(count * kLineBytes) {}
  void number_lines() const {
    in_pieces(count, [&](std::size_t first, std::size_t lines) {
      for (std::size_t i = first; i < first + lines; ++i) std::fill_n(words() + i * kLineWords, kLineWords, i);
    });
  }
  std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(memory.data()); }

  std::size_t count;  // lines
  ops::cpu::WeightMemory memory;
};

void require_right(bool right, std::string_view what) {
  if (!right)
    throw Error(ErrorCode::kInternal, fmt::format("memory gave wrong data on {}", what), "is the memory broken?");
}

using ReadWords = std::uint64_t (*)(const void* from, std::size_t bytes);

// By the loads of the kernels that read weights: what they cannot exceed.
MakeWork make_read(std::size_t bytes, ReadWords read) {
  return [bytes, read](int) {
    const auto block = std::make_shared<MemoryBlock>(bytes);
    block->number_lines();
    return [block, read] {
      const std::uint64_t n = block->count;
      std::uint64_t sum = 0;
      in_pieces(n, [&](std::size_t first, std::size_t lines) {
        sum += read(block->words() + first * kLineWords, lines * kLineBytes);
      });
      require_right(sum == (n == 0 ? 0 : kLineWords * (n * (n - 1) / 2)), "reading");
    };
  };
}

MakeWork make_copy(std::size_t bytes) {
  return [bytes](int) {
    const auto from = std::make_shared<MemoryBlock>(bytes);
    const auto to = std::make_shared<MemoryBlock>(bytes);
    from->number_lines();
    const auto checked = std::make_shared<bool>(false);
    return [from, to, checked] {
      std::uint64_t* const target = to->words();
      const std::uint64_t* const source = from->words();
      in_pieces(from->count, [&](std::size_t first, std::size_t lines) {
        std::memcpy(target + first * kLineWords, source + first * kLineWords, lines * kLineBytes);
      });
      if (*checked) return;  // the first round is not timed
      in_pieces(from->count, [&](std::size_t first, std::size_t lines) {
        require_right(std::memcmp(target + first * kLineWords, source + first * kLineWords, lines * kLineBytes) == 0,
                      "copying");
      });
      *checked = true;
    };
  };
}

// Whichever way of reading this machine does faster: some do better without fetching ahead.
PinnedRounds fastest_read(const std::vector<int>& cores, int rounds, std::size_t bytes) {
  const ops::cpu::Kernels& kernels = ops::cpu::kernels_named("");
  PinnedRounds ahead = run_pinned(cores, rounds, make_read(bytes, kernels.read));
  PinnedRounds plain = run_pinned(cores, rounds, make_read(bytes, kernels.read_plainly));
  return summarize(ahead.seconds).p50 < summarize(plain.seconds).p50 ? ahead : plain;
}

}  // namespace

Bytes choose_block(Bytes last_cache, std::optional<Bytes> available) {
  constexpr Bytes kMin{256LL << 20}, kMax{2LL << 30};
  Bytes block = std::clamp(last_cache * std::int64_t{8}, kMin, kMax);
  if (available) block = std::min(block, *available / std::int64_t{4} / std::int64_t{2});  // source and target
  return block;
}

MemoryRates measure_memory(const MemoryOptions& options) {
  const std::vector<int> cores = options.cores.empty() ? usable_cores() : options.cores;
  MemoryRates result{.last_cache = facts_of_this_machine(DiskTree()).last_cache};
  const Bytes block =
      options.block.value > 0 ? options.block : choose_block(result.last_cache, probe::available_memory(DiskTree()));
  std::vector<std::vector<int>> groups = {{cores.front()}};
  if (cores.size() > 1) groups.push_back(cores);
  Progress progress("measuring memory", static_cast<std::int64_t>(2 * groups.size()));
  for (const bool copies : {false, true}) {
    if (copies && !options.with_copy) continue;
    for (const std::vector<int>& group : groups) {
      progress.update(static_cast<std::int64_t>(result.rates.size()));
      const std::size_t share = static_cast<std::size_t>(block.value) / group.size();
      const PinnedRounds rounds =
          copies ? run_pinned(group, options.rounds, make_copy(share)) : fastest_read(group, options.rounds, share);
      result.pinned = result.pinned && rounds.pinned;
      const double lines = static_cast<double>(share / kLineBytes / kLineStep * kLineStep);
      const double bytes = lines * kLineBytes * static_cast<double>(group.size()) * (copies ? 2 : 1);
      const SampleStats stats = summarize(rounds.seconds);
      result.rates.push_back({.what = copies ? "copy" : "read",
                              .cores = static_cast<int>(group.size()),
                              .block = block,
                              .best = {bytes / stats.min},
                              .median = {bytes / stats.p50},
                              .low = {bytes / stats.p75},
                              .high = {bytes / stats.p25}});
    }
  }
  return result;
}

std::string memory_text(const MemoryRates& rates) {
  report::Table table{.title = "Memory bandwidth",
                      .columns = {{.header = "what"},
                                  {.header = "cores", .align = report::TextAlign::kRight},
                                  {.header = "block", .align = report::TextAlign::kRight},
                                  {.header = "median", .align = report::TextAlign::kRight},
                                  {.header = "best", .align = report::TextAlign::kRight}}};
  for (const MemoryRate& rate : rates.rates) {
    table.rows.push_back({rate.what, fmt::format("{}", rate.cores), yoke::to_string(rate.block),
                          fmt::format("{:.2f} GB/s", rate.median.value / 1e9),
                          fmt::format("{:.2f} GB/s", rate.best.value / 1e9)});
  }
  table.footnotes.push_back("copy counts bytes read and bytes written");
  if (rates.last_cache.value > 0) table.footnotes.push_back("largest cache: " + yoke::to_string(rates.last_cache));
  if (!rates.pinned) table.footnotes.push_back("the system did not let threads be pinned to cores");
  return report::render_text(table);
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

}  // namespace yoke::bench
