// Any bytes, cut at any place: an answer, an Error, never a crash, and the same result however they are cut.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "yoke/base/error.h"
#include "yoke/http/http_answer.h"

namespace {

std::optional<std::string> read_in_pieces(std::string_view text, std::size_t piece) {
  yoke::http::AnswerReader reader;
  try {
    for (std::size_t i = 0; i < text.size(); i += piece) reader.take(text.substr(i, piece));
    reader.take_end();
  } catch (const yoke::Error&) {
    return std::nullopt;
  }
  return std::to_string(reader.answer().status) + reader.answer().body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = read_in_pieces(text, text.size() + 1);
  const auto pieces = read_in_pieces(text, 1 + size % 7);
  if (whole && pieces && *whole != *pieces) std::abort();
  return 0;
}
