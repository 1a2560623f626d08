#include "yoke/base/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "yoke/base/json_walk.h"

namespace yoke {
namespace {

using Json = nlohmann::ordered_json;
Json to_nlohmann(const Document& document) {
  switch (document.kind) {
    case Document::Kind::kNull:
      return nullptr;
    case Document::Kind::kBool:
      return document.text == "true";
    case Document::Kind::kNumber:
      return Json::parse(document.text);
    case Document::Kind::kText:
    case Document::Kind::kPlain:
      return document.text;
    case Document::Kind::kList: {
      Json list = Json::array();
      for (const Document& item : document.items) list.push_back(to_nlohmann(item));
      return list;
    }
    case Document::Kind::kMap: {
      Json map = Json::object();
      // Keys are unique. Asking the library for each takes quadratic time, and vocabularies have 100,000 keys.
      auto& fields = map.get_ref<Json::object_t&>();
      for (const auto& [key, value] : document.fields) fields.emplace_back(key, to_nlohmann(value));
      return map;
    }
  }
  return nullptr;
}

// The library escapes what JSON forbids in a text. DEL and U+0080 to U+009F are allowed, but steer some terminals.
std::string escape_controls(std::string text) {
  const auto is_c1 = [&](std::size_t at) {
    return text[at] == '\xC2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
  };
  if (text.find_first_of("\x7F\xC2") == std::string::npos) return text;
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x7F') {
      escaped += "\\u007f";
    } else if (is_c1(at)) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++at]));
    } else {
      escaped += text[at];
    }
  }
  return escaped;
}

}  // namespace

Document parse_json(std::string_view text, std::string_view source) {
  DocumentBuilder builder;
  walk_json(std::make_shared<const std::string>(text), source, {}, builder);
  return builder.take();
}

bool is_json(std::string_view text) { return Json::accept(text.begin(), text.end()); }

std::string print_json(const Document& document, JsonLayout layout) {
  const int indent = layout == JsonLayout::kIndented ? 2 : -1;
  return escape_controls(to_nlohmann(document).dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace yoke
