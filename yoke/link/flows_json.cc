#include "yoke/base/fields.h"
#include "yoke/link/flows.h"
#include "yoke/link/link_fields.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, SendFlow& flow) {
  visit.required("from", flow.from);
  visit.required("to", flow.to);
}

template <class Visitor>
void visit_fields(Visitor& visit, FlowRequest& request) {
  visit.required("token", request.token);
  visit.optional("send", request.send);
  visit.required("streams", request.streams);
  visit.required("time", request.time);
}

template <class Visitor>
void visit_fields(Visitor& visit, SentFlow& flow) {
  visit.required("bytes", flow.bytes);
  visit.required("retransmits", flow.retransmits);
}

template <class Visitor>
void visit_fields(Visitor& visit, ReceivedFlow& flow) {
  visit.required("bytes", flow.bytes);
  visit.required("window_bytes", flow.window_bytes);
}

template <class Visitor>
void visit_fields(Visitor& visit, ProcessorLoad& load) {
  visit.required("busy", load.busy);
  visit.required("stolen", load.stolen);
  visit.required("throttled", load.throttled);
  visit.required("cores", load.cores);
  visit.required("machine", load.machine);
}

template <class Visitor>
void visit_fields(Visitor& visit, FlowOutcome& outcome) {
  visit.optional("sent", outcome.sent);
  visit.optional("received", outcome.received);
  visit.required("window", outcome.window);
  visit.required("cores", outcome.cores);
  visit.required("load", outcome.load);
}

Document to_json(const FlowRequest& request) { return to_document(request); }
FlowRequest flow_request_from_json(const Document& document) { return from_document<FlowRequest>(document); }
Document to_json(const FlowOutcome& outcome) { return to_document(outcome); }
FlowOutcome flow_outcome_from_json(const Document& document) { return from_document<FlowOutcome>(document); }

}  // namespace yoke
