// The fields of what several messages of yoke/link hold; for .cc files only (base/fields.h).
#pragma once
#include "yoke/base/fields.h"
#include "yoke/base/socket.h"
#include "yoke/link/half_socket.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, Endpoint& endpoint) {
  visit.required("address", endpoint.address);
  visit.required("port", endpoint.port);
}

template <class Visitor>
void visit_fields(Visitor& visit, HalfPlace& place) {
  visit.required("address", place.address);
  visit.required("interface", place.interface);
}

}  // namespace yoke
