#include "yoke/base/place.h"

#include <fmt/format.h>

namespace yoke {
namespace {

class FixedPlace : public PlaceSource {
 public:
  explicit FixedPlace(std::string text) : text_(std::move(text)) {}
  std::string place(std::uint64_t) const override { return text_; }

 private:
  std::string text_;
};

class LinePlaces : public PlaceSource {
 public:
  explicit LinePlaces(std::string source) : source_(std::move(source)) {}
  std::string place(std::uint64_t number) const override { return fmt::format("{}:{}", source_, number); }

 private:
  std::string source_;
};

}  // namespace

TextPlace::TextPlace(std::string text) {
  if (!text.empty()) source_ = std::make_shared<FixedPlace>(std::move(text));
}

std::shared_ptr<const PlaceSource> place_lines(std::string source) {
  return std::make_shared<LinePlaces>(std::move(source));
}

}  // namespace yoke
