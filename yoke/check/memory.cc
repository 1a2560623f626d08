// Memory: too little of it, swapped, or hidden behind the page cache. On unified memory the GPU lives of the same.
#include <fmt/format.h>

#include "yoke/check/rules.h"

namespace yoke {
namespace {

using namespace literals;

constexpr double kAvailableLeast = 0.06;  // of all; a Spark below it (7 GiB) has frozen under the next allocation
constexpr Bytes kSwapMost = 1_GiB;
constexpr double kCachedMost = 0.5;  // of all

bool is_unified(const SurveyedNode& node) { return node.machine && node.machine->memory.unified; }

}  // namespace

AdviceList find_low_memory(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    const Memory& memory = node.machine->memory;
    if (!memory.available || !memory.total || memory.total->value <= 0) continue;
    const Bytes usable = memory.limit ? *memory.limit : *memory.total;
    if (*memory.available / usable >= kAvailableLeast) continue;
    list.push_back({.node = node.name,
                    .subject = "memory",
                    .what = fmt::format("{} has hardly any memory left", node.name),
                    .evidence = fmt::format("{} available of {}", to_string(*memory.available), to_string(usable)),
                    .consequence = memory.unified ? "the next large allocation, the GPU's too, can freeze the machine "
                                                    "until its power is cut"
                                                  : "the next large allocation ends some process",
                    .fix =
                        "end what is not needed ('ps aux --sort=-rss | head'); a server that was killed may have left "
                        "ranks behind"});
  }
  return list;
}

AdviceList find_used_swap(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!is_unified(node) || view.lab) continue;  // a lab's nodes share this machine's swap
    const Memory& memory = node.machine->memory;
    if (!memory.swap_total || !memory.swap_free) continue;
    const Bytes used = *memory.swap_total - *memory.swap_free;
    if (used < kSwapMost) continue;
    list.push_back({.node = node.name,
                    .subject = "swap",
                    .what = fmt::format("{} is swapping: {} are on its disk", node.name, to_string(used)),
                    .evidence = fmt::format("{} of {} swap in use", to_string(used), to_string(*memory.swap_total)),
                    .consequence = "tokens stall while pages come back; under load the machine stops answering",
                    .fix = "plan a smaller model or context, then 'swapoff -a && swapon -a' to bring the pages back"});
  }
  return list;
}

AdviceList find_held_page_cache(const ClusterView& view) {
  AdviceList list;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!is_unified(node) || view.lab) continue;
    const Memory& memory = node.machine->memory;
    if (!memory.cached || !memory.total || memory.total->value <= 0) continue;
    if (*memory.cached / *memory.total < kCachedMost) continue;
    list.push_back(
        {.node = node.name,
         .subject = "page cache",
         .what = fmt::format("most memory of {} holds files that were read", node.name),
         .evidence = fmt::format("{} of {} are page cache", to_string(*memory.cached), to_string(*memory.total)),
         .consequence = "CUDA counts it as used: engines that ask for free GPU memory (vLLM) refuse to start, "
                        "although it is available",
         .fix = "'sync; echo 3 > /proc/sys/vm/drop_caches' as root before starting such an engine"});
  }
  return list;
}

}  // namespace yoke
