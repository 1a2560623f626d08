#include "yoke/job/job_messages.h"

#include <sched.h>

#include <array>

#include "yoke/base/build_info.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"

namespace yoke::job {

template <class Visitor>
void visit_fields(Visitor& visit, Hello& hello) {
  visit.required("protocol", hello.protocol);
  visit.required("version", hello.version);
  visit.required("commit", hello.commit);
  visit.optional("cores", hello.cores);
}

template <class Visitor>
void visit_fields(Visitor& visit, Variable& variable) {
  visit.required("name", variable.name);
  visit.required("value", variable.value);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankStart& start) {
  visit.required("rank", start.rank);
  visit.optional("environment", start.environment);
}

template <class Visitor>
void visit_fields(Visitor& visit, StartRanks& start) {
  visit.required("node", start.node);
  visit.required("argv", start.argv);
  visit.required("own_program", start.own_program);
  visit.optional("folder", start.folder);
  visit.required("folder_required", start.folder_required);
  visit.required("grace", start.grace);
  visit.optional("reports_state", start.reports_state);
  visit.optional("interfaces", start.interfaces);
  visit.required("ranks", start.ranks);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankStarted& started) {
  visit.required("rank", started.rank);
  visit.required("pid", started.pid);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankEnded& ended) {
  visit.required("rank", ended.rank);
  visit.required("exit_status", ended.exit_status);
  visit.optional("signal", ended.signal);
  visit.required("out_of_memory", ended.out_of_memory);
  visit.required("ended_by_us", ended.ended_by_us);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankNote& note) {
  visit.required("rank", note.rank);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankList& list) {
  visit.required("ranks", list.ranks);
}

template <class Visitor>
void visit_fields(Visitor& visit, Credit& credit) {
  visit.required("bytes", credit.bytes);
}

template <class Visitor>
void visit_fields(Visitor& visit, Join& join) {
  visit.required("rank", join.rank);
  visit.optional("endpoints", join.endpoints);
  visit.optional("why", join.why);
}

template <class Visitor>
void visit_fields(Visitor& visit, InterfaceState& interface) {
  visit.required("name", interface.name);
  visit.required("up", interface.is_up);
  visit.optional("sent_bytes", interface.sent_bytes);
  visit.optional("received_bytes", interface.received_bytes);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeState& state) {
  visit.required("time", state.time);
  visit.optional("memory_bytes", state.memory_bytes);
  visit.optional("memory_available_bytes", state.memory_available_bytes);
  visit.optional("interfaces", state.interfaces);
}

template <class Visitor>
void visit_fields(Visitor& visit, PathReport& report) {
  visit.required("rank", report.rank);
  visit.required("epoch", report.epoch);
  visit.required("peer", report.peer);
  visit.optional("rail", report.rail);
  visit.required("state", report.state);
  visit.optional("why", report.why);
}

namespace {

struct ErrorPayload {
  std::string code, message, hint;
};

template <class Visitor>
void visit_fields(Visitor& visit, ErrorPayload& error) {
  visit.required("code", error.code);
  visit.required("message", error.message);
  visit.optional("hint", error.hint);
}

}  // namespace

template <class Payload>
Message to_message(MessageType type, const Payload& payload) {
  return {type, print_json(to_document(payload), JsonLayout::kOneLine)};
}

template <class Payload>
Payload read_payload(const Message& message) {
  return from_json<Payload>(parse_json(message.payload, "message"));
}

template Message to_message(MessageType, const Hello&);
template Message to_message(MessageType, const StartRanks&);
template Message to_message(MessageType, const RankStarted&);
template Message to_message(MessageType, const RankEnded&);
template Message to_message(MessageType, const RankNote&);
template Message to_message(MessageType, const RankList&);
template Message to_message(MessageType, const Credit&);
template Message to_message(MessageType, const Join&);
template Message to_message(MessageType, const PathReport&);
template Message to_message(MessageType, const NodeState&);
template Hello read_payload(const Message&);
template StartRanks read_payload(const Message&);
template RankStarted read_payload(const Message&);
template RankEnded read_payload(const Message&);
template RankNote read_payload(const Message&);
template RankList read_payload(const Message&);
template Credit read_payload(const Message&);
template Join read_payload(const Message&);
template PathReport read_payload(const Message&);
template NodeState read_payload(const Message&);

Message error_message(MessageType type, const Error& error) {
  return to_message(type, ErrorPayload{std::string(info(error.code()).name), error.message(), error.hint()});
}

Error read_error(const Message& message) {
  const auto payload = read_payload<ErrorPayload>(message);
  for (const ErrorCodeInfo& row : error_codes()) {
    if (row.name == payload.code) return Error(row.code, payload.message, payload.hint);
  }
  return Error(ErrorCode::kInternal, payload.message, payload.hint);
}

Message membership_message(const spec::Membership& membership) {
  return {MessageType::kMembership, print_json(spec::to_json(membership), JsonLayout::kOneLine)};
}

spec::Membership read_membership(const Message& message) {
  return from_json<spec::Membership>(parse_json(message.payload, "membership"));
}

Hello own_hello() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return {.version = std::string(build_info().version),
          .commit = std::string(build_info().commit),
          .cores = CPU_COUNT(&cores)};
}

}  // namespace yoke::job
