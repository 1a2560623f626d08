#include "yoke/link/setup_actions.h"

#include <memory>

#include "yoke/base/fields.h"
#include "yoke/link/journal.h"
#include "yoke/link/netplan.h"
#include "yoke/link/setup_facts.h"
#include "yoke/link/step_actions.h"

namespace yoke {
namespace {

// Whether it is so already, and what would be run. What netplan refuses is told before anything is done.
Document look_at_step(const Document& body) {
  const Step step = step_from_json(body);
  const auto action = make_step_action(step);
  const bool satisfied = action->satisfied();
  if (step.kind == StepKind::kNetplan && !satisfied) validate_netplan(step.content, step.path);
  return Document::map({{"satisfied", Document::boolean(satisfied)},
                        {"commands", to_document(satisfied ? std::vector<std::string>{} : action->commands())}});
}

Document undo_steps(const Document& body) {
  Journal journal(kJournalFolder);
  const auto mark = from_document<std::size_t>(*body.find("mark"));
  const bool force = from_document<bool>(*body.find("force"));
  journal.undo(mark, force ? UndoForce::kTakeBack : UndoForce::kNone);
  return Document::null();
}

// What undo would take back, the newest first.
Document list_records() {
  Document list = Document::list();
  const Journal journal(kJournalFolder);
  for (auto record = journal.records().rbegin(); record != journal.records().rend(); ++record) {
    list.items.push_back(Document::map({{"says", Document::string(record->step.says)},
                                        {"time", Document::string(record->time)},
                                        {"done", Document::boolean(record->after.kind != Document::Kind::kNull)}}));
  }
  return list;
}

}  // namespace

AgentActions setup_actions() {
  AgentActions actions;
  actions["setup-facts"] = [](const Document& body) { return to_json(look_for_setup(setup_question_from_json(body))); };
  actions["look-at-step"] = look_at_step;
  actions["do-step"] = [](const Document& body) {
    return Document::boolean(Journal(kJournalFolder).perform(step_from_json(body)));
  };
  actions["records"] = [](const Document&) { return list_records(); };
  actions["undo"] = undo_steps;
  return actions;
}

}  // namespace yoke
