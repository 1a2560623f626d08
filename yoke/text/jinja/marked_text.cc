#include "yoke/text/jinja/marked_text.h"

#include <algorithm>

namespace yoke::text::jinja {

MarkedText::MarkedText(std::string text, Origin origin) : text_(std::move(text)) {
  if (!text_.empty()) runs_.push_back({text_.size(), origin});
}

void MarkedText::append(std::string_view text, Origin origin) {
  if (text.empty()) return;
  text_ += text;
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = text_.size();
  } else {
    runs_.push_back({text_.size(), origin});
  }
}

void MarkedText::append(const MarkedText& other) {
  std::size_t begin = 0;
  for (const Run& run : other.runs_) {
    append(std::string_view(other.text_).substr(begin, run.end - begin), run.origin);
    begin = run.end;
  }
}

MarkedText MarkedText::slice(std::size_t begin, std::size_t size) const {
  MarkedText part;
  const std::size_t end = std::min(text_.size(), begin + std::min(size, text_.size()));
  auto run = std::upper_bound(runs_.begin(), runs_.end(), begin,
                              [](std::size_t at, const Run& candidate) { return at < candidate.end; });
  for (; run != runs_.end() && begin < end; ++run) {
    const std::size_t part_end = std::min(end, run->end);
    part.append(std::string_view(text_).substr(begin, part_end - begin), run->origin);
    begin = part_end;
  }
  return part;
}

Origin MarkedText::weakest() const {
  const bool any_user =
      std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.origin == Origin::kUser; });
  return any_user ? Origin::kUser : Origin::kTemplate;
}

std::vector<Segment> MarkedText::segments() const {
  std::vector<Segment> segments;
  std::size_t begin = 0;
  for (const Run& run : runs_) {
    segments.push_back({text_.substr(begin, run.end - begin), run.origin});
    begin = run.end;
  }
  return segments;
}

}  // namespace yoke::text::jinja
