#include "yoke/text/jinja/budget.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke::text::jinja {

void Budget::look() const {
  if (steps_ > limits_.steps) {
    throw Error(ErrorCode::kExhausted, fmt::format("it does not come to an end within {} steps", limits_.steps));
  }
  throw_if_interrupted();
}

void Budget::refuse_size() const {
  throw Error(ErrorCode::kExhausted, fmt::format("it makes a text of more than {} bytes", limits_.text_bytes));
}

}  // namespace yoke::text::jinja
