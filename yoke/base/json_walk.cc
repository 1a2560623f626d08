#include "yoke/base/json_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/key_set.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

using Json = nlohmann::ordered_json;

// Follows the events up to a value, and says by which keys and indices it is reached.
class PathFinder : public nlohmann::json_sax<Json> {
 public:
  explicit PathFinder(std::uint64_t number) : left_(number) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    levels_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  std::string text(std::string_view source) const {
    std::string path(source);
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (i == 0) path += ": ";
      if (level.is_list) {
        path += fmt::format("[{}]", level.items - 1);
      } else {
        path += (i == 0 ? "" : ".") + printable(level.key, 60);
      }
    }
    return path;
  }

 private:
  struct Level {
    bool is_list;
    std::size_t items = 0;
    std::string key = {};
  };
  bool value() {
    if (!levels_.empty()) ++levels_.back().items;
    return left_-- > 0;
  }
  bool open(bool is_list) {
    if (!value()) return false;
    levels_.push_back({is_list});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  std::uint64_t left_;
  std::vector<Level> levels_;
};

class JsonPlaces : public PlaceSource {
 public:
  JsonPlaces(std::shared_ptr<const std::string> text, std::string_view source)
      : text_(std::move(text)), source_(source) {}
  std::string place(std::uint64_t number) const override {
    PathFinder finder(number);
    Json::sax_parse(*text_, &finder);
    return finder.text(source_);
  }

 private:
  std::shared_ptr<const std::string> text_;
  std::string source_;
};

// nlohmann's events as ours.
class Walker : public nlohmann::json_sax<Json> {
 public:
  Walker(const std::shared_ptr<const std::string>& text, std::string_view source, JsonWalkOptions options,
         JsonHandler& handler)
      : source_(source), options_(options), handler_(handler), places_(std::make_shared<JsonPlaces>(text, source)) {}

  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar(Document::boolean(value)); }
  bool number_integer(number_integer_t value) override { return whole(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return whole(static_cast<std::int64_t>(value));
    return scalar({.kind = Document::Kind::kNumber, .text = fmt::format("{}", value)});
  }
  // 2.0 stays told from 2, as chat templates print what they were given.
  bool number_float(number_float_t value, const string_t&) override {
    Document number = Document::number(value);
    if (number.text.find_first_of(".en") == std::string::npos) number.text += ".0";
    return scalar(std::move(number));
  }
  bool string(string_t& value) override {
    count();
    return give({.kind = JsonEvent::Kind::kText, .places = places_, .number = number_, .text = &value});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonEvent::Kind::kBeginMap); }
  bool start_array(std::size_t) override { return open(JsonEvent::Kind::kBeginList); }
  bool end_object() override { return close(JsonEvent::Kind::kEndMap); }
  bool end_array() override { return close(JsonEvent::Kind::kEndList); }
  bool key(string_t& name) override {
    return give({.kind = JsonEvent::Kind::kKey, .places = places_, .number = number_, .text = &name});
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& failure) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …": the library's prefix says nothing to
    // users.
    std::string text = failure.what();
    if (const std::size_t at = text.find("parse error"); at != std::string::npos) text = text.substr(at);
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not JSON: {}", source_, printable(text)));
  }

 private:
  bool give(JsonEvent event) {
    handler_.on(event);
    return true;
  }
  void count() {
    if (++values_ > options_.values_max) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} holds more than {} values", source_, options_.values_max),
                  "is it the right file?");
    }
    number_ = values_ - 1;
    if (values_ % 65536 == 0) throw_if_interrupted();
  }
  bool scalar(Document value) {
    count();
    return give({.kind = JsonEvent::Kind::kOther, .places = places_, .number = number_, .scalar = &value});
  }
  bool whole(std::int64_t value) {
    count();
    return give({.kind = JsonEvent::Kind::kWhole, .places = places_, .number = number_, .whole = value});
  }
  bool open(JsonEvent::Kind kind) {
    if (++depth_ > limits::kJsonDepth) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} is nested more than {} deep", source_, limits::kJsonDepth));
    }
    count();
    return give({.kind = kind, .places = places_, .number = number_});
  }
  bool close(JsonEvent::Kind kind) {
    --depth_;
    return give({.kind = kind, .places = places_, .number = number_});
  }

  std::string source_;
  JsonWalkOptions options_;
  JsonHandler& handler_;
  std::shared_ptr<const PlaceSource> places_;
  std::uint64_t values_ = 0;
  std::uint64_t number_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace

void walk_json(std::shared_ptr<const std::string> text, std::string_view source, JsonWalkOptions options,
               JsonHandler& handler) {
  // nlohmann takes it for the end of the text, and would not read what follows.
  if (const std::size_t nul = text->find('\0'); nul != std::string::npos) {
    const auto line = 1 + std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not JSON: there is a NUL byte in line {}", source, line));
  }
  Walker walker(text, source, options, handler);
  Json::sax_parse(*text, &walker);
}

struct DocumentBuilder::Building {
  struct Open {
    Document* document;
    KeySet keys = {};
  };
  Document root;
  std::vector<Open> open;
  std::string key;
  std::uint64_t values = 0;
};

DocumentBuilder::DocumentBuilder() : building_(std::make_unique<Building>()) {}
DocumentBuilder::~DocumentBuilder() = default;

bool DocumentBuilder::is_complete() const { return building_->values > 0 && building_->open.empty(); }

Document DocumentBuilder::take() {
  Document document = std::move(building_->root);
  *building_ = {};
  return document;
}

// Documents stay where they are while open: a parent grows only when its open child is closed.
Document* DocumentBuilder::put(const JsonEvent& event, Document value) {
  if (++building_->values > limits::kJsonValues) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: there are more than {} values", building_->root.where, limits::kJsonValues));
  }
  value.where = event.place();
  if (building_->open.empty()) {
    building_->root = std::move(value);
    return &building_->root;
  }
  Document& parent = *building_->open.back().document;
  if (parent.kind == Document::Kind::kList) return &parent.items.emplace_back(std::move(value));
  return &parent.fields.emplace_back(std::move(building_->key), std::move(value)).second;
}

void DocumentBuilder::check_key(const JsonEvent& event) {
  Building::Open& map = building_->open.back();
  if (map.keys.add(*map.document, *event.text)) return;
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: the key '{}' stands twice", map.document->where, printable(*event.text)));
}

void DocumentBuilder::on(JsonEvent& event) {
  using Kind = JsonEvent::Kind;
  switch (event.kind) {
    case Kind::kBeginMap:
      building_->open.push_back({put(event, Document::map())});
      return;
    case Kind::kBeginList:
      building_->open.push_back({put(event, Document::list())});
      return;
    case Kind::kEndMap:
    case Kind::kEndList:
      building_->open.pop_back();
      return;
    case Kind::kKey:
      check_key(event);
      building_->key = std::move(*event.text);
      return;
    case Kind::kText:
      put(event, Document::string(std::move(*event.text)));
      return;
    case Kind::kWhole:
      put(event, Document::number(event.whole));
      return;
    case Kind::kOther:
      put(event, std::move(*event.scalar));
      return;
  }
}

}  // namespace yoke
