// What of an Endpoint needs no socket: its text and its fields.
#include "yoke/base/fields.h"
#include "yoke/base/socket.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, Endpoint& endpoint) {
  visit.required("address", endpoint.address);
  visit.required("port", endpoint.port);
}

std::string to_string(const Endpoint& endpoint) {
  const bool colons = endpoint.address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", colons ? "[" : "", endpoint.address, colons ? "]" : "", endpoint.port);
}

Document to_json(const Endpoint& endpoint) { return write_fields(endpoint); }
void from_json(const Document& document, Endpoint& endpoint) { read_fields(document, endpoint); }

}  // namespace yoke
