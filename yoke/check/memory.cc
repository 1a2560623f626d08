// Memory: too little of it, swapped, or hidden behind the page cache. On unified memory the GPU lives of the same.
#include <fmt/format.h>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

using namespace literals;

constexpr double kMinAvailable = 0.06;  // of all; a Spark below it (7 GiB) has frozen under the next allocation
constexpr Bytes kMaxSwap = 1_GiB;
constexpr double kMaxCached = 0.5;  // of all

// A rate that is so much below the machine's own record is no noise of a measurement.
constexpr double kMinSlower = 1.3;

bool is_unified(const spec::SurveyedNode& node) { return node.machine && node.machine->memory.unified; }

}  // namespace

AdviceList find_low_memory(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    const spec::Memory& memory = node.machine->memory;
    if (!memory.available || !memory.total || memory.total->value <= 0) continue;
    const Bytes usable = memory.limit ? *memory.limit : *memory.total;
    if (*memory.available / usable >= kMinAvailable) continue;
    list.push_back(
        {.node = node.name,
         .subject = "memory",
         .what = fmt::format("{} has hardly any memory left", node.name),
         .evidence = fmt::format("{} available of {}", yoke::to_string(*memory.available), yoke::to_string(usable)),
         .consequence = memory.unified ? "the next large allocation, the GPU's too, can freeze the machine "
                                         "until its power is cut"
                                       : "the next large allocation ends some process",
         .fix = "end what is not needed ('ps aux --sort=-rss | head'); a server that was killed may have left "
                "ranks behind"});
  }
  return list;
}

AdviceList find_used_swap(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!is_unified(node) || view.lab) continue;  // a lab's nodes share this machine's swap
    const spec::Memory& memory = node.machine->memory;
    if (!memory.swap_total || !memory.swap_free) continue;
    const Bytes used = *memory.swap_total - *memory.swap_free;
    if (used < kMaxSwap) continue;
    list.push_back(
        {.node = node.name,
         .subject = "swap",
         .what = fmt::format("{} is swapping: {} are on its disk", node.name, yoke::to_string(used)),
         .evidence = fmt::format("{} of {} swap in use", yoke::to_string(used), yoke::to_string(*memory.swap_total)),
         .consequence = "tokens stall while pages come back; under load the machine stops answering",
         .fix = "plan a smaller model or context, then 'swapoff -a && swapon -a' to bring the pages back"});
  }
  return list;
}

AdviceList find_held_page_cache(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!is_unified(node) || view.lab) continue;
    const spec::Memory& memory = node.machine->memory;
    if (!memory.cached || !memory.total || memory.total->value <= 0) continue;
    if (*memory.cached / *memory.total < kMaxCached) continue;
    list.push_back(
        {.node = node.name,
         .subject = "page cache",
         .what = fmt::format("most memory of {} holds files that were read", node.name),
         .evidence =
             fmt::format("{} of {} are page cache", yoke::to_string(*memory.cached), yoke::to_string(*memory.total)),
         .consequence = "CUDA counts it as used: engines that ask for free GPU memory (vLLM) refuse to start, "
                        "although it is available",
         .fix = "'sync; echo 3 > /proc/sys/vm/drop_caches' as root before starting such an engine"});
  }
  return list;
}

// Nothing else on the machine shows it: clocks, temperatures and logs are as always. What other programs take while it
// is measured is no finding.
AdviceList find_slower_memory(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (view.lab || !node.canary || !node.canary->read || !node.canary->record) continue;
    const spec::MemoryCanary& canary = *node.canary;
    if (canary.taken >= spec::kMaxTaken || canary.read->value * kMinSlower > canary.record->value) continue;
    list.push_back(
        {.node = node.name,
         .subject = "memory",
         .what = fmt::format("{} reads its memory {:.1f} times slower than it once did", node.name,
                             canary.record->value / canary.read->value),
         .evidence = fmt::format("{} now; {} on {}, the best that 'yoke check' has measured on it",
                                 to_string(*canary.read), to_string(*canary.record), canary.record_date),
         .consequence = "every token takes longer by about the same factor",
         .fix = "look for other load ('top', 'nvidia-smi'), a power or heat limit ('nvidia-smi -q -d PERFORMANCE'); a "
                "GB10 can be stuck in a slow state that only unplugging it for a minute ends. If the machine was "
                "changed on purpose, delete ~/.local/share/yoke/checks/memory-records.json"});
  }
  return list;
}

}  // namespace yoke::check
