// A template's text to tokens, with Jinja's rules for white space as transformers sets them (trim_blocks,
// lstrip_blocks, one newline at the end dropped).
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::text::jinja {

struct Token {
  enum class Kind {
    kData,
    kPrintBegin,
    kPrintEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kInteger,
    kReal,
    kText,
    kOperator,
    kEnd
  };
  Kind kind;
  std::string text;
  int line;
};

// `name` is how errors call the template.
std::vector<Token> read_tokens(std::string_view source, const std::string& name);

// kInvalid: "chat template, line 12: …"
[[noreturn]] void refuse(const std::string& name, int line, std::string_view why);

}  // namespace yoke::text::jinja
