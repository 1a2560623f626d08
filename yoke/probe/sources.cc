#include "yoke/probe/sources.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/tree_file.h"
#include "yoke/probe/flow_control.h"
#include "yoke/probe/module_eeprom.h"
#include "yoke/probe/nic_counters.h"
#include "yoke/probe/probe.h"
#include "yoke/probe/recording_tree.h"

namespace yoke::probe {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTree = "machine.tree";
constexpr const char* kLinks = "links.json";
constexpr const char* kNvml = "nvml.json";
constexpr const char* kSystem = "system.json";
constexpr std::size_t kMaxInterfaces = 8192;  // a Kubernetes node has some hundred

Document load_json(const fs::path& file) { return parse_json(read_file(file), file.native()); }

void require_capture(const fs::path& folder) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no folder '{}'", folder.native()),
                "'yoke probe --capture DIR' makes one");
  }
  if (!fs::is_directory(folder, failure)) {
    throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no folder", folder.native()),
                "a capture is a folder, as 'yoke probe --capture DIR' makes it");
  }
  for (const char* name : {kTree, kLinks, kNvml}) {
    if (fs::exists(folder / name, failure)) continue;
    throw Error(ErrorCode::kNotFound, fmt::format("there is no {} in '{}'", name, folder.native()),
                "a capture holds machine.tree, links.json and nvml.json; 'yoke probe --capture DIR' makes one");
  }
}

}  // namespace

Sources sources_here() {
  Sources sources{
      .files = std::make_shared<DiskTree>(), .links = read_link_table(), .nvml = read_nvml(), .system = read_system()};
  read_module_eeproms(sources.links);
  read_flow_control(sources.links);
  read_nic_counters(sources.links);
  return sources;
}

Sources quick_sources_here() {
  return {.files = std::make_shared<DiskTree>(),
          .links = read_link_table(),
          .nvml = {},
          .system = read_system(NcclSearch::kNone)};
}

Sources health_sources_here() {
  Sources sources{.files = std::make_shared<DiskTree>(),
                  .links = read_link_table(),
                  .nvml = read_nvml(),
                  .system = read_system(NcclSearch::kHealth)};
  read_flow_control(sources.links);
  read_nic_counters(sources.links);
  return sources;
}

Sources load_capture(const fs::path& folder) {
  require_capture(folder);
  Sources sources{.files = std::make_shared<MemoryTree>(load_tree(folder / kTree)),
                  .links = from_json<LinkTable>(load_json(folder / kLinks)),
                  .nvml = from_json<NvmlFacts>(load_json(folder / kNvml))};
  if (sources.links.links.size() > kMaxInterfaces) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} holds {} interfaces, more than {}", (folder / kLinks).native(),
                                                 sources.links.links.size(), kMaxInterfaces));
  }
  std::error_code failure;
  if (fs::exists(folder / kSystem, failure)) sources.system = from_json<SystemFacts>(load_json(folder / kSystem));
  return sources;
}

void write_capture(const Sources& sources, const fs::path& folder) {
  const auto recording = std::make_shared<RecordingTree>(*sources.files);
  Sources recorded = sources;
  recorded.files = recording;
  probe_machine(recorded);
  make_folder(folder, 0700);  // it tells MAC and IP addresses
  std::error_code failure;
  if (!fs::is_empty(folder, failure)) {
    throw Error(ErrorCode::kConflict, fmt::format("'{}' is not empty", folder.native()), "name a new folder");
  }
  write_file_atomically(folder / kTree, print_tree(recording->recorded()));
  write_file_atomically(folder / kLinks, print_json(to_json(sources.links)) + "\n");
  write_file_atomically(folder / kNvml, print_json(to_json(sources.nvml)) + "\n");
  write_file_atomically(folder / kSystem, print_json(to_json(sources.system)) + "\n");
}

}  // namespace yoke::probe
