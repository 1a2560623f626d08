// Text that remembers, byte by byte, whether it comes from the template or from a user's values. Joining, cutting and
// stripping keep the marks; whatever cannot keep them exactly takes the weakest, so that a user's bytes are never taken
// for the template's.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/segment.h"

namespace yoke::text::jinja {

class MarkedText {
 public:
  MarkedText() = default;
  MarkedText(std::string text, Origin origin);

  const std::string& text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  void append(const MarkedText& other);
  void append(std::string_view text, Origin origin);
  MarkedText slice(std::size_t begin, std::size_t size) const;
  Origin weakest() const;  // kUser where any byte is a user's
  std::vector<Segment> segments() const;

 private:
  struct Run {
    std::size_t end;
    Origin origin;
  };
  std::string text_;
  std::vector<Run> runs_;  // neighbours differ, and the last ends with the text
};

}  // namespace yoke::text::jinja
