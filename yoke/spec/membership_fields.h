// Where a rank listens, as fields of other structs (base/fields.h), for .cc files.
#pragma once
#include "yoke/base/fields.h"
#include "yoke/spec/membership.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, HalfEndpoint& endpoint) {
  visit.required("half", endpoint.half);
  visit.required("address", endpoint.address);
  visit.required("port", endpoint.port);
}

}  // namespace yoke
