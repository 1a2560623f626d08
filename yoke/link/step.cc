#include "yoke/link/step.h"

#include "yoke/base/fields.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, Step& step) {
  visit.required("kind", step.kind);
  visit.required("says", step.says);
  visit.optional("path", step.path);
  visit.optional("content", step.content);
  visit.optional("lines", step.lines);
  visit.optional("mode", step.mode);
  visit.optional("interface", step.interface);
  visit.optional("address", step.address);
  visit.optional("mtu", step.mtu);
  visit.optional("via", step.via);
}

Document to_json(const Step& step) { return write_fields(step); }
Step step_from_json(const Document& document) { return read_fields<Step>(document); }

}  // namespace yoke
