#include "yoke/bench/run_events.h"

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::bench {
namespace {

CollectiveRun without_rows(const CollectiveRun& run) {
  CollectiveRun rest = run;
  rest.rows.clear();
  return rest;
}

}  // namespace

void EventWriter::write_event(std::string name, Document content) const {
  write_(print_json(Document::map({{std::move(name), std::move(content)}}), JsonLayout::kOneLine) + "\n");
}

void EventWriter::begin(const CollectiveRun& run) { write_event("begin", to_json(without_rows(run))); }
void EventWriter::row(const CollectiveRun&, const CollectiveRow& row) { write_event("row", to_json(row)); }
void EventWriter::end(const CollectiveRun& run) { write_event("end", to_json(without_rows(run))); }

void EventReader::take(std::string_view bytes) {
  partial_ += bytes;
  std::size_t newline = 0;
  while ((newline = partial_.find('\n')) != std::string::npos) {
    const std::string line = partial_.substr(0, newline);
    partial_.erase(0, newline + 1);
    take_line(line);
  }
}

void EventReader::take_line(const std::string& line) {
  const Document event = parse_json(line, "what rank 0 wrote");
  if (const Document* run = event.find("begin")) {
    run_ = from_json<CollectiveRun>(*run);
    began_ = true;
    if (sink_) sink_->begin(run_);
  } else if (const Document* row = event.find("row")) {
    run_.rows.push_back(from_json<CollectiveRow>(*row));
    if (sink_) sink_->row(run_, run_.rows.back());
  } else if (const Document* end = event.find("end")) {
    std::vector<CollectiveRow> rows = std::move(run_.rows);
    run_ = from_json<CollectiveRun>(*end);
    run_.rows = std::move(rows);
  } else {
    throw Error(ErrorCode::kInvalid, "rank 0 wrote something else than its run: " + printable(line, 120));
  }
}

const CollectiveRun& EventReader::finish(const std::optional<Error>& cause) {
  if (cause && !began_) throw Error(*cause);
  if (cause) run_.failure = failure_of(*cause);
  if (run_.ended.empty()) run_.ended = time_of_day();
  if (sink_) sink_->end(run_);
  return run_;
}

}  // namespace yoke::bench
