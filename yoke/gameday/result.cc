#include "yoke/gameday/result.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke::gameday {

template <class Visitor>
void visit_fields(Visitor& visit, PlayedCommand& command) {
  visit.required("line", command.line);
  visit.required("seconds", command.seconds);
  visit.required("exit_status", command.exit_status);
}

template <class Visitor>
void visit_fields(Visitor& visit, Figure& figure) {
  visit.required("name", figure.name);
  visit.required("value", figure.value);
  visit.required("unit", figure.unit);
  visit.required("note", figure.note);
}

template <class Visitor>
void visit_fields(Visitor& visit, PhaseResult& phase) {
  visit.required("name", phase.name);
  visit.required("title", phase.title);
  visit.required("verdict", phase.verdict);
  visit.required("why", phase.why);
  visit.required("seconds", phase.seconds);
  visit.required("figures", phase.figures);
  visit.required("passed_checks", phase.held);
  visit.required("commands", phase.commands);
}

template <class Visitor>
void visit_fields(Visitor& visit, GamedayResult& result) {
  visit.required("place", result.place);
  visit.required("started", result.started);
  visit.required("seconds", result.seconds);
  visit.required("phases", result.phases);
}

std::string to_string(Verdict verdict) { return to_document(verdict).text; }

std::string to_string(const Figure& figure) {
  std::string text = fmt::format("{} {:.3g}", figure.name, figure.value);
  if (!figure.unit.empty()) text += " " + figure.unit;
  if (!figure.note.empty()) text += fmt::format(" ({})", figure.note);
  return text;
}

bool GamedayResult::passed() const {
  return std::none_of(phases.begin(), phases.end(),
                      [](const PhaseResult& phase) { return phase.verdict == Verdict::kFail; });
}

Document to_json(const GamedayResult& result) {
  Document document = write_fields(result);
  document.add("passed", Document::boolean(result.passed()));
  return document;
}

}  // namespace yoke::gameday
