// What the module at the end of a cable says of itself: its EEPROM, as ethtool shows it (SFF-8636 for QSFP, CMIS for
// QSFP-DD and OSFP, SFF-8472 for SFP).
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/probe/link_table.h"
#include "yoke/spec/machine.h"

namespace yoke::probe {

// Of the first 256 bytes, in hex digits; nothing for what is no such module.
std::optional<spec::CableModule> parse_module_eeprom(std::string_view hex);

// Asks the kernel for the modules of the interfaces that are PCI functions, without their serial numbers. The kernel
// answers root only; where it does not, the field stays absent.
void read_module_eeproms(LinkTable& table);

}  // namespace yoke::probe
