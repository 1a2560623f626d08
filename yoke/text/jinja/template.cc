#include "yoke/text/jinja/template.h"

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/jinja/lexer.h"
#include "yoke/text/jinja/parser.h"

namespace yoke::text::jinja {

Template Template::parse(std::string_view source, std::string name) {
  if (find_invalid_utf8(source)) throw Error(ErrorCode::kInvalid, name + " is not UTF-8");
  TokenReader reader(read_tokens(source, name), name);
  return Template(parse_template(reader), std::move(name));
}

MarkedText Template::render(const Value& variables, const std::tm& clock, const Limits& limits) const {
  YOKE_CHECK(variables.as_map() != nullptr);
  return Interpreter(*program_, name_, limits, clock).run(*variables.as_map());
}

}  // namespace yoke::text::jinja
