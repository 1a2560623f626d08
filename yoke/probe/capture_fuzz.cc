// Captures: whatever parses is probed without a bug, and the facts survive their own JSON. An input is the four files
// of a capture in the order machine.tree, links.json, nvml.json, system.json, parted by lines "=====".
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/tree_file.h"
#include "yoke/probe/probe.h"

namespace {

std::string_view take_part(std::string_view& rest) {
  constexpr std::string_view kLine = "\n=====\n";
  const std::size_t end = rest.find(kLine);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? "" : rest.substr(end + kLine.size());
  return part;
}

// A part that does not parse leaves its source empty, so that one broken file does not hide the others.
yoke::probe::Sources parse_sources(std::string_view rest) {
  using namespace yoke;
  using namespace yoke::probe;
  Sources sources;
  const std::string_view tree = take_part(rest);
  const auto parsed = try_to([&] { return parse_tree(std::string(tree) + "\n", "fuzz.tree", {}); });
  sources.files = std::make_shared<MemoryTree>(parsed ? *parsed : MemoryTree());
  const auto read = [&]<typename T>(T& target) {
    const std::string_view part = take_part(rest);
    const auto value = try_to([&] { return from_json<T>(parse_json(part, "fuzz.json")); });
    if (value) target = *value;
  };
  read(sources.links);
  read(sources.nvml);
  read(sources.system);
  return sources;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const yoke::probe::Sources sources = parse_sources({reinterpret_cast<const char*>(data), size});
  yoke::spec::Machine machine;
  try {
    machine = yoke::probe::probe_machine(sources);
  } catch (const yoke::Error&) {
    return 0;
  }
  // Broken UTF-8 is replaced when printed, so the second print is compared, not the first.
  const std::string printed = yoke::print_json(yoke::spec::to_json(machine));
  const yoke::spec::Machine again = from_json<yoke::spec::Machine>(yoke::parse_json(printed, "printed.json"));
  YOKE_CHECK_EQ(yoke::print_json(yoke::spec::to_json(again)), printed);
  return 0;
}
