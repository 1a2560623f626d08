#include "yoke/base/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kJsonDepthMost = 64;

// Builds the Document while nlohmann's parser reads; it keeps the path to say where a value stands.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(std::string_view source) : source_(source) {}
  Document take() { return std::move(root_); }

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put(Document::boolean(value)); }
  bool number_integer(number_integer_t value) override { return put(Document::number(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return put({.kind = Document::Kind::kNumber, .text = fmt::format("{}", value)});
  }
  // 2.0 stays told from 2, as chat templates print what they were given.
  bool number_float(number_float_t value, const string_t&) override {
    Document number = Document::number(value);
    if (number.text.find_first_of(".en") == std::string::npos) number.text += ".0";
    return put(std::move(number));
  }
  bool string(string_t& value) override { return put(Document::string(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Document::map()); }
  bool start_array(std::size_t) override { return open(Document::list()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{}: the key '{}' stands twice", open_.back()->where, printable(name)));
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& failure) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …": the library's prefix says nothing to
    // users.
    std::string text = failure.what();
    if (const std::size_t at = text.find("parse error"); at != std::string::npos) text = text.substr(at);
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not JSON: {}", source_, printable(text)));
  }

 private:
  // Documents stay where they are while open: a parent grows only when its open child is closed.
  Document* put_in_parent(Document value) {
    if (open_.empty()) {
      root_ = std::move(value);
      root_.where = source_;
      return &root_;
    }
    Document& parent = *open_.back();
    const bool in_root = open_.size() == 1;
    value.where = parent.where + (in_root ? ": " : "");
    if (parent.kind == Document::Kind::kList) {
      value.where += fmt::format("[{}]", parent.items.size());
      return &parent.items.emplace_back(std::move(value));
    }
    value.where += (in_root ? "" : ".") + printable(key_, 60);
    return &parent.fields.emplace_back(std::move(key_), std::move(value)).second;
  }
  bool put(Document value) {
    put_in_parent(std::move(value));
    return true;
  }
  bool open(Document value) {
    if (open_.size() >= kJsonDepthMost) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} is nested more than {} deep", source_, kJsonDepthMost));
    }
    open_.push_back(put_in_parent(std::move(value)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string source_;
  Document root_;
  std::vector<Document*> open_;
  // The keys of each open map: asking the map itself takes quadratic time, and vocabularies have 100,000 keys.
  std::vector<std::unordered_set<std::string>> keys_;
  std::string key_;
};

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

}  // namespace

Document parse_json(std::string_view text, std::string_view source) {
  JsonBuilder builder{source};
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string print_json(const Document& document, JsonLayout layout) {
  const int indent = layout == JsonLayout::kIndented ? 2 : -1;
  return to_nlohmann(document).dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace yoke
