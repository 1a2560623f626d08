#include "yoke/engine/plan.h"

#include <cstring>

#include "yoke/base/check.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/engine/messages.h"

namespace yoke {

inline void read_field(const Document& document, Request& request) { request = request_from_json(document); }
inline void write_field(Document& document, const Request& request) { document = to_json(request); }

template <class Visitor>
void visit_fields(Visitor& visit, PlanRow& row) {
  visit.required("id", row.id);
  visit.required("fresh", row.fresh);
  visit.optional("made", row.made);
}

template <class Visitor>
void visit_fields(Visitor& visit, StepPlan& plan) {
  visit.required("end", plan.end);
  visit.optional("released", plan.released);
  visit.optional("admitted", plan.admitted);
  visit.optional("rows", plan.rows);
}

std::string encode(const StepPlan& plan) { return print_json(to_document(plan), JsonLayout::kOneLine); }

StepPlan decode_plan(std::string_view bytes) { return from_document<StepPlan>(parse_json(bytes, "plan")); }

namespace {

// A plan of decoding fits into the first message; only one with prompts needs a second.
constexpr std::size_t kFirstMessage = 1024;
using Length = std::uint32_t;

}  // namespace

StepPlan share_plan(Communicator& control, const std::optional<StepPlan>& own) {
  YOKE_CHECK_EQ(own.has_value(), control.rank() == 0);
  std::string bytes = own ? encode(*own) : std::string();
  if (control.size() == 1) return *own;
  std::string first(kFirstMessage, '\0');
  if (own) {
    const auto length = static_cast<Length>(bytes.size());
    std::memcpy(first.data(), &length, sizeof length);
    std::memcpy(first.data() + sizeof length, bytes.data(), std::min(bytes.size(), first.size() - sizeof length));
  }
  broadcast(control, first.data(), first.size(), DType::kI8, 0);
  if (own) {
    if (bytes.size() > first.size() - sizeof(Length)) broadcast(control, bytes.data(), bytes.size(), DType::kI8, 0);
    return *own;
  }
  Length length = 0;
  std::memcpy(&length, first.data(), sizeof length);
  if (length <= first.size() - sizeof length) return decode_plan(std::string_view(first).substr(sizeof length, length));
  bytes.resize(length);
  broadcast(control, bytes.data(), bytes.size(), DType::kI8, 0);
  return decode_plan(bytes);
}

}  // namespace yoke
