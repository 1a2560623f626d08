// Whatever a model writes, its parts are the same in one piece and byte by byte.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "yoke/text/answer_parts.h"

namespace {

using yoke::text::AnswerPart;

// Neighbours of one kind put together: how the pieces are cut does not count.
std::string joined(const std::vector<AnswerPart>& parts) {
  std::string all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool goes_on = i > 0 && parts[i - 1].kind == parts[i].kind && parts[i].kind != AnswerPart::Kind::kCall;
    if (!goes_on) all += '\x01' + std::to_string(static_cast<int>(parts[i].kind)) + ':';
    all += parts[i].text;
  }
  return all;
}

std::string parsed(yoke::text::AnswerStyle style, bool in_thought, std::string_view text, std::size_t step) {
  yoke::text::AnswerParser parser(style, {.tools = {"f", "g"}, .begins_in_thought = in_thought});
  std::vector<AnswerPart> all;
  const auto take = [&](const std::vector<AnswerPart>& parts) { all.insert(all.end(), parts.begin(), parts.end()); };
  for (std::size_t at = 0; at < text.size(); at += step) take(parser.add(text.substr(at, step)));
  take(parser.finish());
  return joined(all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const yoke::text::AnswerStyle style{.tools = static_cast<yoke::text::ToolStyle>(data[0] % 4),
                                      .thinks = (data[0] & 4) != 0};
  const bool in_thought = (data[0] & 8) != 0;
  if (parsed(style, in_thought, text, 1) != parsed(style, in_thought, text, text.size() + 1)) std::abort();
  return 0;
}
