#include "yoke/link/setup_actions.h"

#include "yoke/base/fields.h"
#include "yoke/link/journal.h"
#include "yoke/link/netplan.h"
#include "yoke/link/setup_facts.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {

template <class Visitor>
void visit_fields(Visitor& visit, StepLook& look) {
  visit.required("satisfied", look.satisfied);
  visit.required("commands", look.commands);
}

template <class Visitor>
void visit_fields(Visitor& visit, UndoRecord& record) {
  visit.required("description", record.description);
  visit.required("time", record.time);
  visit.required("done", record.done);
}

template <class Visitor>
void visit_fields(Visitor& visit, UndoRequest& request) {
  visit.required("mark", request.mark);
  visit.required("force", request.force);
}

Document to_json(const StepLook& look) { return write_fields(look); }
void from_json(const Document& document, StepLook& look) { read_fields(document, look); }
Document to_json(const UndoRecord& record) { return write_fields(record); }
void from_json(const Document& document, UndoRecord& record) { read_fields(document, record); }
Document to_json(const UndoRequest& request) { return write_fields(request); }
void from_json(const Document& document, UndoRequest& request) { read_fields(document, request); }

Document report_setup_facts(const Document& question, agent::AgentContext&) {
  return to_json(find_setup(from_json<SetupQuestion>(question)));
}

// What netplan refuses is reported before anything is done.
Document inspect_step(const Document& question, agent::AgentContext&) {
  const Step step = from_json<Step>(question);
  const auto action = make_step_action(step);
  const bool satisfied = action->satisfied();
  if (step.kind == StepKind::kNetplan && !satisfied) {
    // Under the journal's lock: an undo that comes while a killed setup's look is still under way waits for its end,
    // and then finds what it left.
    const Journal journal(kJournalFolder);
    validate_netplan(step.content, step.path);
  }
  return to_json(StepLook{satisfied, satisfied ? std::vector<std::string>{} : action->commands()});
}

Document do_step(const Document& question, agent::AgentContext&) {
  return Document::boolean(Journal(kJournalFolder).perform(from_json<Step>(question)));
}

Document list_records(const Document&, agent::AgentContext&) {
  std::vector<UndoRecord> list;
  const Journal journal(kJournalFolder);
  for (auto record = journal.records().rbegin(); record != journal.records().rend(); ++record) {
    list.push_back({record->step.description, record->time, record->after.kind != Document::Kind::kNull});
  }
  return to_document(list);
}

Document undo_steps(const Document& question, agent::AgentContext&) {
  Journal journal(kJournalFolder);
  const UndoRequest request = from_json<UndoRequest>(question);
  journal.undo(request.mark, request.force ? UndoForce::kOverwrite : UndoForce::kNone);
  return Document::null();
}

}  // namespace yoke::link
