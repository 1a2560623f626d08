#include "yoke/link/step.h"

#include "yoke/base/fields.h"

namespace yoke::link {

template <class Visitor>
void visit_fields(Visitor& visit, Step& step) {
  visit.required("kind", step.kind);
  visit.required("description", step.description);
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
void from_json(const Document& document, Step& step) { read_fields(document, step); }

}  // namespace yoke::link
