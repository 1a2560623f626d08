#include "yoke/probe/memory_kind.h"

#include <algorithm>
#include <memory>

#include "yoke/base/result.h"
#include "yoke/probe/available_memory.h"
#include "yoke/probe/collectors.h"
#include "yoke/spec/hardware.h"

namespace yoke::probe {

spec::MemoryKind memory_kind(const FileTree& tree) {
  if (memory_limit(tree)) return spec::MemoryKind::kHost;
  Sources sources;
  sources.files = std::shared_ptr<const FileTree>(&tree, [](const FileTree*) {});
  spec::Machine machine;
  // A file of the driver that makes no sense is the probe's to report, not a reason to refuse a model.
  const auto looked = try_to([&] { collect_gpus(sources, machine); });
  const bool is_unified = std::any_of(machine.gpus.begin(), machine.gpus.end(),
                                      [](const spec::Gpu& gpu) { return spec::has_unified_memory(gpu.name); });
  return looked && is_unified ? spec::MemoryKind::kUnified : spec::MemoryKind::kHost;
}

}  // namespace yoke::probe
