#include "yoke/agent/agent_frame.h"

#include <fmt/format.h>

#include <chrono>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::agent {

struct AgentFailure {
  std::string code, message, hint;
  std::vector<std::string> context;
};

template <class Visitor>
void visit_fields(Visitor& visit, AgentFailure& failure) {
  visit.required("code", failure.code);
  visit.required("message", failure.message);
  visit.required("hint", failure.hint);
  visit.required("context", failure.context);
}

namespace {

constexpr FrameForm kAgentForm{.magic = "YKA\x01",
                               .header_size = 13,
                               .payload_max = kMaxAgentPayload,
                               .kind_max = static_cast<std::uint8_t>(FrameKind::kStop)};

std::string one_line(const Document& document) { return print_json(document, JsonLayout::kOneLine); }

const Document& field_of(const Document& document, const char* name) {
  const Document* field = document.find(name);
  if (!field) throw Error(ErrorCode::kInvalid, fmt::format("{} lacks '{}'", document.where, name));
  return *field;
}

[[noreturn]] void throw_failure(const AgentFailure& failure) {
  ErrorCode code = ErrorCode::kInternal;
  for (const ErrorCodeInfo& row : error_codes()) {
    if (row.name == failure.code) code = row.code;
  }
  Error error(code, failure.message, failure.hint);
  for (const std::string& where : failure.context) error = std::move(error).in(where);
  throw error;
}

}  // namespace

std::string encode(const AgentFrame& frame) {
  if (frame.payload.size() > kMaxAgentPayload) {
    throw Error(ErrorCode::kInvalid, fmt::format("a message to or from a node takes {} bytes; {} is the most",
                                                 frame.payload.size(), kMaxAgentPayload));
  }
  return frame_begin(kAgentForm, frame.payload.size(), static_cast<std::uint8_t>(frame.kind)) +
         little_endian(frame.id) + frame.payload;
}

AgentFrameReader::AgentFrameReader() : buffer_(kAgentForm) {}

std::optional<AgentFrame> AgentFrameReader::next() {
  const auto frame = buffer_.next();
  if (!frame) return std::nullopt;
  return AgentFrame{static_cast<FrameKind>(frame_kind(*frame)), from_little_endian(std::string_view(*frame).substr(9)),
                    frame->substr(kAgentForm.header_size)};
}

AgentFrame question_frame(std::uint32_t id, std::string_view action, const Document& question) {
  const Document body = Document::map({{"action", Document::string(std::string(action))}, {"question", question}});
  return {FrameKind::kQuestion, id, one_line(body)};
}

AgentQuestion read_question(const AgentFrame& frame) {
  const Document body = parse_json(frame.payload, "question");
  return {from_json<std::string>(field_of(body, "action")), field_of(body, "question")};
}

AgentFrame answer_frame(std::uint32_t id, const Document& answer) { return {FrameKind::kAnswer, id, one_line(answer)}; }

AgentFrame error_frame(std::uint32_t id, const Error& error) {
  const AgentFailure failure{std::string(info(error.code()).name), error.message(), error.hint(), error.context()};
  return {FrameKind::kError, id, one_line(to_document(failure))};
}

Document read_answer(const AgentFrame& frame, const std::string& where) {
  Document body = parse_json(frame.payload, where);
  if (frame.kind == FrameKind::kError) throw_failure(from_json<AgentFailure>(body));
  return body;
}

AgentFrame output_frame(std::uint32_t id, OutputStream stream, std::string_view bytes) {
  std::string payload(1, stream == OutputStream::kOut ? '\x01' : '\x02');
  return {FrameKind::kBytes, id, payload.append(bytes)};
}

AgentOutput read_output(const AgentFrame& frame) {
  const char stream = frame.payload.empty() ? '\0' : frame.payload.front();
  if (stream != 1 && stream != 2) throw Error(ErrorCode::kInvalid, "output of no stream came");
  return {stream == 1 ? OutputStream::kOut : OutputStream::kErr, frame.payload.substr(1)};
}

AgentFrame time_frame(FrameKind kind, double time) {
  return {kind, 0, one_line(Document::map({{"time", Document::number(time)}}))};
}

double read_time(const AgentFrame& frame) {
  return from_json<double>(field_of(parse_json(frame.payload, "heartbeat"), "time"));
}

double agent_clock_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace yoke::agent
