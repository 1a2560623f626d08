#include "yoke/comm/interface_choice.h"

#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/text.h"

namespace yoke::comm {

std::string describe_interfaces(std::string_view library, std::initializer_list<const char*> variables) {
  std::string reported;
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value && *value)
      reported += fmt::format("{}{}={}", reported.empty() ? "" : ", ", variable, printable(value, 80));
  }
  return reported.empty() ? fmt::format("interfaces as {} chooses", library) : reported;
}

}  // namespace yoke::comm
