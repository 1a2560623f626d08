// Values as text: Python's way and JSON's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/text/jinja/value.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

// As Python's repr: 1.0, 1e+16, inf.
std::string print_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Each value is charged for before it is written, and the size of what there is looked at as it grows.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void print(const Value& value) {
    budget_.spend(1);
    if (const MarkedText* text = value.as_text()) {
      budget_.spend(text->size() / 16);
      out_.append(*text);
    } else if (const List* list = value.as_list()) {
      print_list(*list);
    } else if (const Map* map = value.as_map()) {
      print_map(*map);
    } else {
      write(scalar(value));
    }
    budget_.check_size(out_.size());
  }
  MarkedText take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (const bool* flag = value.as_bool()) return *flag ? "True" : "False";
    if (const auto* whole = value.as_integer()) return fmt::format("{}", *whole);
    if (const double* real = value.as_real()) return print_real(*real);
    if (value.is_none()) return "None";
    if (!value.is_undefined()) throw Error(ErrorCode::kInvalid, fmt::format("{} cannot be printed", value.kind()));
    return {};
  }

  void write(std::string_view text) { out_.append(text, Origin::kTemplate); }

  void print_inside(const Value& value) {
    if (const MarkedText* text = value.as_text()) {
      quote(*text);
    } else {
      print(value);
    }
  }

  void print_list(const List& list) {
    const bool is_tuple = list.kind == ListKind::kTuple;
    write(is_tuple ? "(" : "[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) write(", ");
      print_inside(list.items[i]);
    }
    if (is_tuple) write(list.items.size() == 1 ? ",)" : ")");
    if (!is_tuple) write("]");
  }

  void print_map(const Map& map) {
    write("{");
    for (std::size_t i = 0; i < map.entries.size(); ++i) {
      if (i > 0) write(", ");
      print_inside(map.entries[i].first);
      write(": ");
      print_inside(map.entries[i].second);
    }
    write("}");
  }

  // A text inside a list: quoted as Python does, by ' unless that would need an escape and " would not.
  void quote(const MarkedText& value) {
    const std::string& text = value.text();
    budget_.spend(1 + text.size() / 2);
    const bool prefers_double = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
    const Origin weakest = value.weakest();
    const char mark = prefers_double ? '"' : '\'';
    write(std::string_view(&mark, 1));
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const auto byte = static_cast<unsigned char>(c);
      std::string escaped;
      if (c == mark || c == '\\') escaped = std::string("\\") + c;
      if (c == '\n') escaped = "\\n";
      if (c == '\r') escaped = "\\r";
      if (c == '\t') escaped = "\\t";
      if (escaped.empty() && (byte < 0x20 || byte == 0x7F)) escaped = fmt::format("\\x{:02x}", byte);
      if (escaped.empty()) {
        out_.append(value.slice(i, 1));
      } else {
        out_.append(escaped, weakest);
      }
      budget_.check_size(out_.size());
    }
    write(std::string_view(&mark, 1));
  }

  Budget& budget_;
  MarkedText out_;
};

class JsonWriter {
 public:
  JsonWriter(JsonStyle style, Budget& budget) : style_(style), budget_(budget) {}

  void write(const Value& value) {
    budget_.spend(1);
    budget_.check_size(out_.size());
    if (const MarkedText* text = value.as_text()) return write_text(*text);
    if (const List* list = value.as_list()) {
      return write_items('[', ']', list->items, [&](const Value& item) { write(item); });
    }
    if (const Map* map = value.as_map()) {
      return write_items('{', '}', in_order(*map), [&](const auto* entry) {
        write_key(entry->first);
        out_ += style_.between_key_and_value;
        write(entry->second);
      });
    }
    if (const bool* flag = value.as_bool()) {
      out_ += *flag ? "true" : "false";
    } else if (value.is_number()) {
      out_ += print(value, budget_).text();
    } else if (value.is_none()) {
      out_ += "null";
    } else {
      throw Error(ErrorCode::kInvalid, fmt::format("{} has no JSON form", value.kind()));
    }
  }

  MarkedText take() { return {std::move(out_), weakest_}; }

 private:
  std::vector<const std::pair<Value, Value>*> in_order(const Map& map) const {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : map.entries) entries.push_back(&entry);
    if (!style_.sort_keys) return entries;
    std::ranges::stable_sort(entries,
                             [&](const auto* a, const auto* b) { return compare(a->first, b->first, budget_) < 0; });
    return entries;
  }

  template <class Items, class Write>
  void write_items(char open, char close, const Items& items, Write write_item) {
    out_ += open;
    ++level_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += style_.between_items.value_or(style_.indent >= 0 ? "," : ", ");
      first = false;
      new_line();
      write_item(item);
    }
    --level_;
    if (!first) new_line();
    out_ += close;
  }

  // Keys of JSON are texts: what is none becomes one, as json.dumps does it.
  void write_key(const Value& key) {
    if (key.as_text()) return write_text(*key.as_text());
    out_ += '"';
    write(key);
    out_ += '"';
  }

  void new_line() {
    if (style_.indent >= 0) out_ += "\n" + std::string(static_cast<std::size_t>(style_.indent * level_), ' ');
  }

  void write_text(const MarkedText& text) {
    budget_.spend(text.size() / 4);
    if (text.weakest() == Origin::kUser) weakest_ = Origin::kUser;
    constexpr std::string_view kValues = "\"\\\b\f\n\r\t";
    constexpr std::string_view kNames = "\"\\bfnrt";
    out_ += '"';
    for (std::string_view rest = text.text(); !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
      const char32_t code = code_point(rest);
      if (const std::size_t known = kValues.find(rest.front()); known != std::string_view::npos) {
        out_ += '\\';
        out_ += kNames[known];
      } else if (code < 0x20 || (style_.only_ascii && code > 0x7F)) {
        write_escape(code);
      } else {
        out_ += rest.substr(0, utf8_length(rest));
      }
      budget_.check_size(out_.size());
    }
    out_ += '"';
  }

  void write_escape(char32_t code) {
    if (code < 0x10000) {
      out_ += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      write_escape(0xD800 + ((code - 0x10000) >> 10));
      write_escape(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }

  JsonStyle style_;
  Budget& budget_;
  int level_ = 0;
  std::string out_;
  Origin weakest_ = Origin::kTemplate;
};

}  // namespace

MarkedText print(const Value& value, Budget& budget) {
  Printer printer(budget);
  printer.print(value);
  return printer.take();
}

MarkedText to_json(const Value& value, JsonStyle style, Budget& budget) {
  JsonWriter writer(style, budget);
  writer.write(value);
  return writer.take();
}

}  // namespace yoke::text::jinja
