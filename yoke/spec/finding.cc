#include "yoke/spec/finding.h"

#include <array>

#include "yoke/base/fields.h"

namespace yoke::spec {

constexpr auto enum_names(Severity) {
  return std::array{std::pair{"info", Severity::kInfo}, std::pair{"warning", Severity::kWarning},
                    std::pair{"error", Severity::kError}};
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
void from_json(const Document& document, Finding& finding) { read_fields(document, finding); }

}  // namespace yoke::spec
