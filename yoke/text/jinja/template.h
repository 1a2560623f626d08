// A Jinja template: the part of the language that chat templates use, with transformers' settings (trim_blocks,
// lstrip_blocks, tojson as json.dumps with ensure_ascii=False, raise_exception, strftime_now, break and continue).
//
//   const Template greeting = Template::parse("Hi {{ name|trim }}!", "greeting");
//   greeting.render(variables, clock).segments()   // "Hi " of the template, "Ada" of the user, "!" of the template
//
// Mistakes in a template are kInvalid, what we do not support is kUnsupported, what costs too much is kExhausted: each
// with the line. Immutable once parsed: any thread may render.
#pragma once
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/jinja/interpreter.h"

namespace yoke::text::jinja {

class Template {
 public:
  // `name` is how errors call it.
  static Template parse(std::string_view source, std::string name);

  // `variables` is a map; the clock is what strftime_now prints.
  MarkedText render(const Value& variables, const std::tm& clock, const Limits& limits = {}) const;

 private:
  Template(Block program, std::string name)
      : program_(std::make_shared<const Block>(std::move(program))), name_(std::move(name)) {}
  std::shared_ptr<const Block> program_;
  std::string name_;
};

}  // namespace yoke::text::jinja
