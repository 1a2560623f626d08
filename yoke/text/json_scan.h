// Walks a JSON text without building it. A tokenizer.json holds hundreds of thousands of small values: as Documents,
// which remember where each stands, they take some 300 MB and seconds. So the vocabulary and the merges are walked
// here, and every other part is given to parse_json as the piece of text it is.
//
//   JsonScan scan(text, "tokenizer.json");
//   scan.for_each_field([&](std::string key) { if (key == "model") … else scan.skip(); });
//
// Each handler must consume the value it is called for. Errors are kInvalid with the line. One thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"

namespace yoke {

class JsonScan {
 public:
  JsonScan(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  void for_each_field(const std::function<void(std::string key)>& handle);
  void for_each_item(const std::function<void()>& handle);
  std::string text();
  std::int64_t whole_number();
  Document document();  // the value with all it holds
  void skip();          // checks no more than is needed to find the end
  bool at_list();
  void end();  // nothing but blanks may follow

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  char peek();  // the next character that is no blank; 0 at the end
  void expect(char wanted);
  void skip_text();
  unsigned hex4();
  void escape(std::string& value);

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
};

}  // namespace yoke
