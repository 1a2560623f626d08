#include "yoke/link/setup_actions.h"

#include "yoke/base/fields.h"
#include "yoke/link/journal.h"
#include "yoke/link/netplan.h"
#include "yoke/link/setup_facts.h"
#include "yoke/link/step_actions.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, StepLook& look) {
  visit.required("satisfied", look.satisfied);
  visit.required("commands", look.commands);
}

template <class Visitor>
void visit_fields(Visitor& visit, UndoRecord& record) {
  visit.required("says", record.says);
  visit.required("time", record.time);
  visit.required("done", record.done);
}

template <class Visitor>
void visit_fields(Visitor& visit, UndoRequest& request) {
  visit.required("mark", request.mark);
  visit.required("force", request.force);
}

Document to_json(const StepLook& look) { return to_document(look); }
StepLook step_look_from_json(const Document& document) { return from_document<StepLook>(document); }
Document to_json(const std::vector<UndoRecord>& records) { return to_document(records); }
std::vector<UndoRecord> undo_records_from_json(const Document& document) {
  return from_document<std::vector<UndoRecord>>(document);
}
Document to_json(const UndoRequest& request) { return to_document(request); }
UndoRequest undo_request_from_json(const Document& document) { return from_document<UndoRequest>(document); }

Document tell_setup_facts(const Document& question, AgentContext&) {
  return to_json(look_for_setup(setup_question_from_json(question)));
}

// What netplan refuses is told before anything is done.
Document look_at_step(const Document& question, AgentContext&) {
  const Step step = step_from_json(question);
  const auto action = make_step_action(step);
  const bool satisfied = action->satisfied();
  if (step.kind == StepKind::kNetplan && !satisfied) validate_netplan(step.content, step.path);
  return to_json(StepLook{satisfied, satisfied ? std::vector<std::string>{} : action->commands()});
}

Document do_step(const Document& question, AgentContext&) {
  return Document::boolean(Journal(kJournalFolder).perform(step_from_json(question)));
}

Document list_records(const Document&, AgentContext&) {
  std::vector<UndoRecord> list;
  const Journal journal(kJournalFolder);
  for (auto record = journal.records().rbegin(); record != journal.records().rend(); ++record) {
    list.push_back({record->step.says, record->time, record->after.kind != Document::Kind::kNull});
  }
  return to_json(list);
}

Document undo_steps(const Document& question, AgentContext&) {
  Journal journal(kJournalFolder);
  const UndoRequest request = undo_request_from_json(question);
  journal.undo(request.mark, request.force ? UndoForce::kTakeBack : UndoForce::kNone);
  return Document::null();
}

}  // namespace yoke
