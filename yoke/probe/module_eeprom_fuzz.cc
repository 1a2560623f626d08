// Any bytes of a module: what is read of it is printable, and no length is out of the standards' range.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/probe/module_eeprom.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto module = yoke::probe::parse_module_eeprom({reinterpret_cast<const char*>(data), size});
  if (!module) return 0;
  for (const std::string* text : {&module->vendor, &module->part_number}) {
    YOKE_CHECK(std::all_of(text->begin(), text->end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
  YOKE_CHECK(!module->length_m || (*module->length_m > 0 && *module->length_m <= 6300));
  return 0;
}
