// Where a value stands in a text: "cluster.yaml:4" or "plan.json: nodes[1].name". It is kept as a number, and becomes a
// text only when an error names it: a file of a million values must not cost a million texts. Copies are cheap.
#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace yoke {

// What turns numbers into places: one for each text that was read.
class PlaceSource {
 public:
  virtual ~PlaceSource() = default;
  virtual std::string place(std::uint64_t number) const = 0;
};

class TextPlace {
 public:
  TextPlace() = default;        // made by the program: an empty text
  TextPlace(std::string text);  // NOLINT: a text of its own is a place
  TextPlace(const char* text) : TextPlace(std::string(text)) {}
  TextPlace(std::shared_ptr<const PlaceSource> source, std::uint64_t number)
      : source_(std::move(source)), number_(number) {}

  std::string text() const { return source_ ? source_->place(number_) : std::string(); }
  operator std::string() const { return text(); }  // NOLINT: what an error wants
  friend bool operator==(const TextPlace& place, std::string_view text) { return place.text() == text; }

 private:
  std::shared_ptr<const PlaceSource> source_;
  std::uint64_t number_ = 0;
};

// A source whose places are lines: "cluster.yaml:4".
std::shared_ptr<const PlaceSource> place_lines(std::string source);

}  // namespace yoke

template <>
struct fmt::formatter<yoke::TextPlace> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const yoke::TextPlace& place, Context& context) const {
    return fmt::formatter<std::string_view>::format(place.text(), context);
  }
};
