// Tree files: whatever parses prints, and what is printed parses to the same tree.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/tree_file.h"

namespace {

std::string read_include(std::string_view path) {
  if (path == "part.tree") return "vendor = 0x15b3\nin net\nspeed = 200000\n";
  if (path == "again.tree") return "in /a\ninclude part.tree\nin /b\ninclude again.tree\n";
  throw yoke::Error(yoke::ErrorCode::kNotFound, "there is no such file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  yoke::MemoryTree tree;
  try {
    tree = yoke::parse_tree({reinterpret_cast<const char*>(data), size}, "fuzz.tree", read_include);
  } catch (const yoke::Error&) {
    return 0;
  }
  const std::string text = yoke::print_tree(tree);
  const yoke::MemoryTree again = yoke::parse_tree(text, "printed.tree", read_include);
  YOKE_CHECK_EQ(tree.entries().size(), again.entries().size());
  for (const auto& [path, entry] : tree.entries()) {
    const auto other = again.entries().find(path);
    YOKE_CHECK(other != again.entries().end(), "'{}' was lost", path);
    YOKE_CHECK(other->second.kind == entry.kind && other->second.content == entry.content, "'{}' has changed", path);
  }
  return 0;
}
