// Any kernel log: what is read of it is bounded and printable.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/probe/kernel_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto& xid : yoke::probe::parse_xids({reinterpret_cast<const char*>(data), size})) {
    YOKE_CHECK(xid.number > 0 && xid.count > 0 && xid.line.size() <= 1000);
    for (const std::string* text : {&xid.pci_address, &xid.line}) {
      YOKE_CHECK(std::all_of(text->begin(), text->end(), [](char c) { return c < 0 || c >= ' '; }));
    }
  }
  return 0;
}
