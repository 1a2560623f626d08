#include "yoke/spec/finding.h"

#include <array>

#include "yoke/base/fields.h"

namespace yoke {

constexpr auto enum_names(Severity) {
  return std::array{std::pair{"note", Severity::kNote}, std::pair{"warning", Severity::kWarning},
                    std::pair{"fault", Severity::kFault}};
}

template <class Visitor>
void visit_fields(Visitor& visit, Finding& finding) {
  visit.required("rule", finding.rule);
  visit.required("severity", finding.severity);
  visit.optional("node", finding.node);
  visit.optional("subject", finding.subject);
  visit.required("what", finding.what);
  visit.required("evidence", finding.evidence);
  visit.required("consequence", finding.consequence);
  visit.required("fix", finding.fix);
}

std::string_view to_string(Severity severity) {
  for (const auto& [name, value] : enum_names(severity)) {
    if (value == severity) return name;
  }
  return "";
}

Document to_json(const Finding& finding) { return write_fields(finding); }
Finding finding_from_json(const Document& document) { return read_fields<Finding>(document); }

}  // namespace yoke
