// Text that comes piece by piece, such as a model's answer, broken between words at the width of a terminal.
//
//   WordFlow flow(80);
//   print(flow.add(piece));   // what can be shown already: a word waits for its end
//   print(flow.finish());
//
// Lines between ``` and ```, and lines that begin with a space or a tab, stay as they are: they are code.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace yoke::report {

class WordFlow {
 public:
  explicit WordFlow(std::size_t columns) : columns_(columns) {}

  std::string add(std::string_view piece);
  std::string finish();

 private:
  void end_word(std::string& out);
  void end_line(std::string& out);

  std::size_t columns_;
  std::size_t column_ = 0;   // where the next word would begin
  std::size_t spaces_ = 0;   // after the last word, not shown yet
  std::string word_;         // as far as it has come
  bool begins_line_ = true;  // of the model's text, not of ours
  bool keeps_line_ = false;  // this line is code
  bool in_fence_ = false;    // between ``` and ```
};

}  // namespace yoke::report
