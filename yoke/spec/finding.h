// Advice as data: what is wrong, how we know, what it costs, how to mend it. Findings are never thrown.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/document.h"

namespace yoke {

enum class Severity {
  kNote,     // worth knowing
  kWarning,  // works, but slower or less safely than it could
  kFault,    // does not work, or is silently far from what the hardware gives
};

std::string_view to_string(Severity severity);  // "note", "warning", "fault"

struct Finding {
  std::string rule;  // a stable name, such as "half-idle", for scripts and for the documentation
  Severity severity = Severity::kNote;
  std::optional<std::string> node;          // absent: the whole cluster
  std::optional<std::string> subject = {};  // what on the node: an interface, a device, a variable, a file
  std::string what;
  std::string evidence;
  std::string consequence;
  std::string fix;

  friend bool operator==(const Finding&, const Finding&) = default;
};

Document to_json(const Finding& finding);
Finding finding_from_json(const Document& document);

}  // namespace yoke
