// A question as JSON, as it is kept with a run: without the healthy runs, which are others'.
#include "yoke/base/fields.h"
#include "yoke/why/evaluate_run.h"

namespace yoke::why {

template <class Visitor>
void visit_fields(Visitor& visit, PlannedStep& step) {
  visit.required("weights", step.weights);
  visit.required("cache", step.cache);
  visit.required("fixed", step.fixed);
  visit.required("exchange", step.exchange);
}

template <class Visitor>
void visit_fields(Visitor& visit, PlannedRun& planned) {
  visit.required("decode", planned.decode);
  visit.required("prefill_computing", planned.prefill_computing);
  visit.required("prefill_exchange", planned.prefill_exchange);
  visit.required("spread", planned.spread);
  visit.required("calibrated", planned.is_calibrated);
  visit.optional("read_rate", planned.read_rate);
}

template <class Visitor>
void visit_fields(Visitor& visit, RailsExpected& rails) {
  visit.optional("rails", rails.rails);
  visit.optional("rate", rails.rate);
  visit.optional("mtu", rails.mtu);
}

template <class Visitor>
void visit_fields(Visitor& visit, RunQuestion& question) {
  visit.required("account", question.account);
  visit.optional("planned", question.planned);
  visit.required("rails", question.rails);
  visit.optional("options", question.options);
}

Document to_json(const RunQuestion& question) { return write_fields(question); }
void from_json(const Document& document, RunQuestion& question) { read_fields(document, question); }

}  // namespace yoke::why
