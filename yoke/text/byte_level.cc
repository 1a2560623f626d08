#include "yoke/text/byte_level.h"

#include <array>
#include <cstdint>

#include "yoke/text/unicode.h"

namespace yoke::text {
namespace {

constexpr std::size_t kCharactersEnd = 0x144;
constexpr std::int16_t kNoByte = -1;

struct Alphabet {
  std::array<std::string, 256> character_of;
  std::array<std::int16_t, kCharactersEnd> byte_of{};
};

Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(kNoByte);
  char32_t next_unprintable = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const char32_t character = printable ? byte : next_unprintable++;
    append_utf8(alphabet.character_of[byte], character);
    alphabet.byte_of[character] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

const Alphabet& alphabet() {
  static const Alphabet made = make_alphabet();
  return made;
}

}  // namespace

void append_byte_level(std::string& text, std::string_view bytes) {
  const Alphabet& letters = alphabet();
  for (const char byte : bytes) text += letters.character_of[static_cast<unsigned char>(byte)];
}

void append_bytes_of(std::string& bytes, std::string_view token) {
  const Alphabet& letters = alphabet();
  const std::size_t before = bytes.size();
  for (std::string_view rest = token; !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    const char32_t character = code_point(rest);
    const std::int16_t byte = character < kCharactersEnd ? letters.byte_of[character] : kNoByte;
    if (byte == kNoByte) {
      bytes.resize(before);
      bytes += token;
      return;
    }
    bytes += static_cast<char>(byte);
  }
}

}  // namespace yoke::text
