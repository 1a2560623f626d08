// Advice as data: what is wrong, how we know, what it costs, how to mend it. Findings are never thrown.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"

namespace yoke::spec {

enum class Severity {
  kInfo,     // worth knowing
  kWarning,  // works, but slower or less safely than it could
  kError,    // does not work, or is silently far from what the hardware gives
};

std::string_view to_string(Severity severity);  // "info", "warning", "error"

struct Finding {
  std::string rule;  // a stable name, such as "rail-idle", for scripts and for the documentation
  Severity severity = Severity::kInfo;
  std::optional<std::string> node;          // absent: the whole cluster
  std::optional<std::string> subject = {};  // what on the node: an interface, a device, a variable, a file
  std::string what;
  std::string evidence;
  std::string consequence;
  std::string fix;

  friend bool operator==(const Finding&, const Finding&) = default;
};

Document to_json(const Finding& finding);
void from_json(const Document& document, Finding& finding);

}  // namespace yoke::spec
