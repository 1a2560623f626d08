// Any text: a list of hosts is refused by an Error, or is bounded.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/result.h"
#include "yoke/spec/hostlist.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto names = yoke::try_to([&] { return yoke::spec::expand_hostlist(text); });
  YOKE_CHECK(!names || (!names->empty() && names->size() <= 4096));
  return 0;
}
