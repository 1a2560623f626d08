#include "yoke/engine/agreement.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"

namespace yoke::engine {
namespace {

struct ReportedError {
  std::string node, code, message, hint;
  bool same_as(const ReportedError& other) const {
    return code == other.code && message == other.message && hint == other.hint;
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, ReportedError& error) {
  visit.required("node", error.node);
  visit.required("code", error.code);
  visit.required("message", error.message);
  visit.required("hint", error.hint);
}

Error to_error(const ReportedError& reported) {
  for (const ErrorCodeInfo& row : error_codes()) {
    if (row.name == reported.code) return {row.code, reported.message, reported.hint};
  }
  return {ErrorCode::kInternal, reported.message, reported.hint};
}

}  // namespace

std::vector<std::string> gather_texts(comm::Communicator& control, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(control.size());
  const auto length = static_cast<std::int32_t>(mine.size());
  std::vector<std::int32_t> lengths(ranks);
  comm::all_gather(control, &length, lengths.data(), 1, tensor::DType::kI32);
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::string> texts(ranks);
  if (longest == 0) return texts;
  std::string padded = mine;
  padded.resize(longest);
  std::string all(longest * ranks, '\0');
  comm::all_gather(control, padded.data(), all.data(), longest, tensor::DType::kI8);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts[rank] = all.substr(rank * longest, static_cast<std::size_t>(lengths[rank]));
  }
  return texts;
}

void do_together(comm::Communicator& control, const std::string& node, const std::function<void()>& work) {
  std::string mine;
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    mine = print_json(
        to_document(ReportedError{node, std::string(info(error.code()).name), error.message(), error.hint()}),
        JsonLayout::kOneLine);
  }
  const std::vector<std::string> texts = gather_texts(control, mine);
  std::optional<ReportedError> first;
  std::size_t rank_of_first = 0;
  bool everywhere = true;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::optional<ReportedError> reported;
    if (!texts[rank].empty()) reported = from_json<ReportedError>(parse_json(texts[rank], "a rank's error"));
    if (!first && reported) rank_of_first = rank;
    if (!first) first = reported;
    everywhere = everywhere && reported && reported->same_as(*first);
  }
  if (!first) return;
  Error error = to_error(*first);
  if (!everywhere) error = std::move(error).in(fmt::format("on {} (rank {})", first->node, rank_of_first));
  throw AgreedError(std::move(error));
}

}  // namespace yoke::engine
