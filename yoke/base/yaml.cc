#include "yoke/base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/key_set.h"
#include "yoke/base/text.h"
#include "yoke/base/units.h"

namespace yoke {
namespace {

constexpr std::size_t kMaxSize = 1U << 20U;
constexpr std::size_t kMaxYamlDepth = 32;

class YamlBuilder : public YAML::EventHandler {
 public:
  explicit YamlBuilder(std::string_view source) : source_(source), places_(place_lines(source_)) {}
  Document take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    put(mark, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "aliases (*name) are not used here"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    // yaml-cpp tags a plain scalar "?" and a quoted one "!".
    if (tag == "!") {
      put(mark, Document::string(value));
    } else if (tag == "?" || tag.empty()) {
      put(mark, {.kind = Document::Kind::kPlain, .text = value});
    } else {
      refuse(mark, "tags (!name) are not used here");
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open(mark, tag, Document::list());
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open(mark, tag, Document::map());
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    Document* document;
    bool has_key = false;
    std::string key = {};
    int key_line = 0;
    KeySet keys = {};
  };

  std::string at(const YAML::Mark& mark) const { return fmt::format("{}:{}", source_, mark.line + 1); }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view what, std::string hint = {}) const {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", at(mark), what), std::move(hint));
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "anchors (&name) are not used here");
  }

  void open(const YAML::Mark& mark, const std::string& tag, Document value) {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (!name) are not used here");
    if (open_.size() >= kMaxYamlDepth) refuse(mark, fmt::format("nested more than {} deep", kMaxYamlDepth));
    open_.push_back({put(mark, std::move(value))});
  }

  // A parent grows only when its open child is closed, so pointers to open documents stay good.
  Document* put(const YAML::Mark& mark, Document value) {
    if (++values_ % 65536 == 0) throw_if_interrupted();
    value.where = {places_, static_cast<std::uint64_t>(mark.line) + 1};
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Open& parent = open_.back();
    if (parent.document->kind == Document::Kind::kList) return &parent.document->items.emplace_back(std::move(value));
    if (!parent.has_key) {
      set_key(mark, parent, value);
      return parent.document;
    }
    parent.has_key = false;
    // yaml-cpp places a value that is not there where the next token stands.
    if (value.kind == Document::Kind::kNull) value.where = {places_, static_cast<std::uint64_t>(parent.key_line) + 1};
    return &parent.document->fields.emplace_back(std::move(parent.key), std::move(value)).second;
  }

  void set_key(const YAML::Mark& mark, Open& parent, const Document& key) const {
    if (key.kind != Document::Kind::kPlain && key.kind != Document::Kind::kText) refuse(mark, "a key must be a word");
    if (key.text == "<<") refuse(mark, "merge keys (<<) are not used here");
    if (!parent.keys.add(*parent.document, key.text)) {
      refuse(mark, fmt::format("the key '{}' stands twice", printable(key.text, 60)), "keep one of them");
    }
    parent.key = key.text;
    parent.key_line = mark.line;
    parent.has_key = true;
  }

  std::string source_;
  std::shared_ptr<const PlaceSource> places_;
  std::uint64_t values_ = 0;
  Document root_;
  std::vector<Open> open_;
};

std::size_t line_of(std::string_view text, std::size_t offset) {
  return static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n')) +
         1;
}

void check_text(std::string_view text, std::string_view source) {
  if (text.size() > kMaxSize) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} has {}, more than the {} that such a file may have", source,
                            to_string(Bytes{static_cast<std::int64_t>(text.size())}), to_string(Bytes{kMaxSize})),
                "is it the right file?");
  }
  if (const auto bad = find_invalid_utf8(text)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: this is not UTF-8 text", source, line_of(text, *bad)),
                "save the file as UTF-8");
  }
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
  });
  if (control != text.end()) {
    const auto offset = static_cast<std::size_t>(control - text.begin());
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}:{}: there is a control character (0x{:02x})", source, line_of(text, offset),
                            static_cast<unsigned char>(*control)),
                "is it a text file?");
  }
}

// Plain where no YAML reader could take it for anything else; quoted in doubt.
bool may_stand_plain(std::string_view text) {
  constexpr std::string_view kSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+";
  if (text.empty() || text.find_first_not_of(kSafe) != std::string_view::npos) return false;
  if (text.front() == '-' || text == "." || text == "null" || text == "Null" || text == "NULL") return false;
  return !text.starts_with("...");
}

std::string scalar(const Document& document) {
  switch (document.kind) {
    case Document::Kind::kNull:
      return "null";
    case Document::Kind::kBool:
      return document.text;
    case Document::Kind::kNumber:
      return document.with_unit.empty() ? document.text : document.with_unit;
    default:
      break;
  }
  if (may_stand_plain(document.text)) return document.text;
  std::string quoted = "\"";
  for (const char c : document.text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20 || byte == 0x7F)
      quoted += fmt::format("\\x{:02x}", byte);
    else
      quoted += c;
  }
  return quoted + "\"";
}

std::string flow(const Document& document) {
  std::string text;
  if (document.kind == Document::Kind::kList) {
    for (const Document& item : document.items) text += (text.empty() ? "" : ", ") + flow(item);
    return "[" + text + "]";
  }
  if (document.kind == Document::Kind::kMap) {
    for (const auto& [key, value] : document.fields) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", scalar(Document::string(key)), flow(value));
    }
    return text.empty() ? "{}" : "{ " + text + " }";
  }
  return scalar(document);
}

bool is_scalar(const Document& document) {
  return document.kind != Document::Kind::kList && document.kind != Document::Kind::kMap;
}

bool has_only_scalars(const Document& document) {
  return std::all_of(document.items.begin(), document.items.end(), is_scalar) &&
         std::all_of(document.fields.begin(), document.fields.end(), [](const auto& f) { return is_scalar(f.second); });
}

void print_block(const Document& map, std::size_t indent, std::string& out);

// An item that is a simple map stays on its line; another becomes a block, its first key behind the dash.
void print_item(const Document& item, std::size_t indent, std::string& out) {
  if (item.kind != Document::Kind::kMap || has_only_scalars(item)) {
    out += std::string(indent, ' ') + "- " + flow(item) + "\n";
    return;
  }
  const std::size_t start = out.size();
  print_block(item, indent + 2, out);
  out[start + indent] = '-';
}

void print_block(const Document& map, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const auto& [key, value] : map.fields) {
    out += margin + scalar(Document::string(key)) + ":";
    if (value.kind == Document::Kind::kMap && !value.fields.empty()) {
      out += "\n";
      print_block(value, indent + 2, out);
    } else if (value.kind == Document::Kind::kList && !has_only_scalars(value)) {
      out += "\n";
      for (const Document& item : value.items) print_item(item, indent + 2, out);
    } else {
      out += " " + flow(value) + "\n";
    }
  }
}

}  // namespace

Document parse_yaml(std::string_view text, std::string_view source) {
  check_text(text, source);
  std::istringstream stream{std::string(text)};
  YamlBuilder builder{source};
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    YamlBuilder rest{source};
    if (parser.HandleNextDocument(rest)) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: there is more than one document in it", source),
                  "remove the line '---' between them");
    }
  } catch (const YAML::Exception& failure) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}:{}: {}", source, failure.mark.line + 1, printable(failure.msg)),
                "this is not YAML: check indentation, colons and quotes around here");
  }
  return builder.take();
}

std::string print_yaml(const Document& document) {
  if (document.kind != Document::Kind::kMap || document.fields.empty()) return flow(document) + "\n";
  std::string out;
  print_block(document, 0, out);
  return out;
}

}  // namespace yoke
