#include "yoke/probe/module_eeprom.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace yoke::probe {
namespace {

// 256 bytes of zeros with some set, as hex digits.
class MadeModule {
 public:
  explicit MadeModule(std::uint8_t identifier) : bytes_(256, '\0') { set(0, identifier); }
  void set(std::size_t at, std::uint8_t value) { bytes_[at] = static_cast<char>(value); }
  void set(std::size_t at, std::string_view text) {
    std::string padded(text);
    padded.resize(16, ' ');
    bytes_.replace(at, 16, padded);
  }
  std::string hex() const {
    std::string hex;
    for (const char c : bytes_) hex += fmt::format("{:02x}", static_cast<std::uint8_t>(c));
    return hex;
  }

 private:
  std::string bytes_;
};

TEST(ModuleEeprom, OfAQsfpCableReportsPartLengthAndMedium) {
  MadeModule made(0x11);
  made.set(146, 2);
  made.set(147, 0xA0);
  made.set(148, "Amphenol");
  made.set(168, "NJAAKK0006");
  made.set(196, "SECRETSERIAL");
  const auto module = parse_module_eeprom(made.hex() + "\n");
  ASSERT_TRUE(module);
  EXPECT_EQ(*module, (spec::CableModule{"QSFP28", "copper", "Amphenol", "NJAAKK0006", 2.0}));
}

TEST(ModuleEeprom, OfACmisModuleHasLengthsBelowAMetre) {
  MadeModule made(0x1E);
  made.set(129, "LUXSHARE-ICT");
  made.set(148, "LMTQF022-SD-R");
  made.set(202, 0x04);
  made.set(212, 0x0A);
  EXPECT_EQ(parse_module_eeprom(made.hex()),
            (spec::CableModule{"QSFP112", "copper", "LUXSHARE-ICT", "LMTQF022-SD-R", 0.4}));
  made.set(212, 0x02);
  EXPECT_EQ(parse_module_eeprom(made.hex())->medium, "optical");
}

TEST(ModuleEeprom, ThatIsNoneGivesNothing) {
  EXPECT_FALSE(parse_module_eeprom(""));
  EXPECT_FALSE(parse_module_eeprom("11"));
  EXPECT_FALSE(parse_module_eeprom(std::string(512, 'x')));
  EXPECT_FALSE(parse_module_eeprom(MadeModule(0xFF).hex()));
}

}  // namespace
}  // namespace yoke::probe
