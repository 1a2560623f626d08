#include "yoke/report/word_flow.h"

#include "yoke/base/text.h"

namespace yoke::report {

std::string WordFlow::add(std::string_view piece) {
  std::string out;
  for (const char c : piece) {
    if (c == '\n') {
      end_line(out);
    } else if (c == ' ' && !keeps_line_ && !begins_line_) {
      end_word(out);
      ++spaces_;
    } else {
      if (begins_line_) keeps_line_ = in_fence_ || c == ' ' || c == '\t';
      begins_line_ = false;
      word_ += c;
    }
  }
  // What may become a fence is held until it is one, or is not.
  const bool may_be_fence = column_ == 0 && word_.size() < 3 && std::string_view("```").starts_with(word_);
  if (keeps_line_ && !may_be_fence) end_word(out);
  return out;
}

std::string WordFlow::finish() {
  std::string out;
  end_word(out);
  out.append(spaces_, ' ');
  spaces_ = 0;
  return out;
}

void WordFlow::end_word(std::string& out) {
  if (word_.empty()) return;
  if (word_.starts_with("```") && column_ == 0 && spaces_ == 0) {
    in_fence_ = !in_fence_;
    keeps_line_ = true;
  }
  const std::size_t width = count_columns(word_);
  if (!keeps_line_ && column_ > 0 && column_ + spaces_ + width > columns_) {
    out += '\n';
    column_ = 0;
  } else {
    out.append(spaces_, ' ');
    column_ += spaces_;
  }
  out += word_;
  column_ += width;
  spaces_ = 0;
  word_.clear();
}

void WordFlow::end_line(std::string& out) {
  end_word(out);
  out += '\n';
  column_ = spaces_ = 0;
  begins_line_ = true;
  keeps_line_ = false;
}

}  // namespace yoke::report
