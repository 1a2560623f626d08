#include "yoke/text/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/text/byte_level.h"
#include "yoke/text/components.h"
#include "yoke/text/normalizer.h"

namespace yoke::text {
namespace {

void decode_byte_level(std::string& token, TokenPlace, TextBudget&) {
  std::string bytes;
  append_bytes_of(bytes, token);
  token = std::move(bytes);
}

// <0xE2> is a byte.
void decode_byte_fallback(std::string& token, TokenPlace, TextBudget&) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return;
  unsigned value = 0;
  if (std::from_chars(token.data() + 3, token.data() + 5, value, 16).ptr != token.data() + 5) return;
  token.assign(1, static_cast<char>(value));
}

std::size_t strip_length(std::string_view text, std::string_view unit, std::int64_t most) {
  std::size_t length = 0;
  for (std::int64_t i = 0; i < most && text.substr(length).starts_with(unit); ++i) length += unit.size();
  return length;
}

}  // namespace

Decoder Decoder::read(const Document& document) {
  Decoder decoder;
  if (!is_null(&document)) decoder.add(document);
  return decoder;
}

void Decoder::add_strip(const Document& document) {
  const std::string unit = mark_setting(document, "content");
  const std::int64_t start = number_setting(document, "start", 0);
  const std::int64_t stop = number_setting(document, "stop", 0);
  if (stop != 0 || unit.empty()) {
    // The end of a text that is still being written is not known.
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: a decoder that strips at the end is not supported", document.where));
  }
  steps_.push_back([unit, start, once = fused_](std::string& token, TokenPlace place, TextBudget&) {
    if (once && place != TokenPlace::kFirst) return;
    token.erase(0, strip_length(token, unit, start));
  });
}

void Decoder::add(const Document& document) {
  const std::string type = component_type(document);
  check_steps(steps_.size(), document);
  if (type == "Sequence") {
    for (const Document& part : sequence_items(document, "decoders")) add(part);
  } else if (type == "ByteLevel") {
    steps_.push_back(decode_byte_level);
  } else if (type == "ByteFallback") {
    steps_.push_back(decode_byte_fallback);
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Strip") {
    add_strip(document);
  } else if (type == "Replace") {
    steps_.push_back([pattern = read_pattern(required(document, "pattern")),
                      content = mark_setting(document, "content")](std::string& token, TokenPlace, TextBudget& budget) {
      token = pattern.replace_all(token, content, budget.bytes_max(), budget.cpu());
    });
  } else if (type == "Metaspace") {
    const bool prefix = flag_setting(document, "add_prefix_space", true);
    const bool prepended = text_setting(document, "prepend_scheme", prefix ? "always" : "never") != "never";
    steps_.push_back([mark = Pattern::literal(mark_setting(document, "replacement")), prepended](
                         std::string& token, TokenPlace place, TextBudget& budget) {
      const std::string_view space = prepended && place == TokenPlace::kFirst ? "" : " ";
      token = mark.replace_all(token, space, budget.bytes_max(), budget.cpu());
    });
  } else {
    refuse_component(document, "decoder");
  }
}

void Decoder::append(std::string& bytes, std::string_view token, TokenPlace place) const {
  std::string decoded(token);
  TextBudget budget(token.size(), TextBudget::Of::kToken);
  for (const Step& step : steps_) step(decoded, place, budget);
  bytes += decoded;
}

}  // namespace yoke::text
