#include "yoke/bench/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::bench {
namespace {

using why::PartKind;
using why::RankParts;
using why::TracePart;

double clock_error_of(const std::vector<RankParts>& ranks) {
  double error = 0;
  for (const RankParts& rank : ranks) error = std::max(error, rank.clock_error);
  return error;
}

std::string json_text(const std::string& text) { return print_json(Document::string(text), JsonLayout::kOneLine); }

std::string_view part_category(PartKind kind) {
  for (const auto& [name, value] : why::enum_names(PartKind{})) {
    if (value == kind) return name;
  }
  return "";
}

// A rank is a process of the trace with one thread; the number of the rank decides the order.
void put_trace_rank(std::string& out, const RankParts& rank) {
  const auto put = [&](std::string_view name, const std::string& arguments) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","pid":{},"tid":0,"name":"{}","args":{{{}}}}},)"
                   "\n",
                   rank.rank, name, arguments);
  };
  put("process_name", fmt::format(R"("name":{})", json_text(fmt::format("rank {} on {}", rank.rank, rank.node))));
  put("process_sort_index", fmt::format(R"("sort_index":{})", rank.rank));
  put("process_labels",
      fmt::format(R"("labels":{})", json_text(fmt::format("clock within {}", to_string(Seconds{rank.clock_error})))));
  put("thread_name", R"("name":"steps")");
}

void put_trace_part(std::string& out, int rank, const TracePart& part) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"X","pid":{},"tid":0,"name":{},"cat":"{}","ts":{:.3f},"dur":{:.3f},"args":{{"step":{})",
                 rank, json_text(part.name), part_category(part.kind), part.begin, part.duration, part.step);
  if (part.layer >= 0) fmt::format_to(std::back_inserter(out), R"(,"layer":{})", part.layer);
  if (part.bytes > 0) fmt::format_to(std::back_inserter(out), R"(,"bytes":{:.0f})", part.bytes);
  out += "}},\n";
}

double percent_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

void check_trace_file(const std::filesystem::path& file) {
  if (file.empty()) return;
  if (std::filesystem::exists(file)) {
    throw Error(ErrorCode::kConflict, fmt::format("'{}' exists already", file.native()),
                "name another file for --trace, or remove it");
  }
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::kNotFound, fmt::format("--trace: the folder of '{}' does not exist", file.native()),
                "make the folder first");
  }
  if (access(folder.c_str(), W_OK) != 0) {
    throw system_error(errno, fmt::format("cannot write '{}'", file.native()), "name another file for --trace");
  }
}

std::string trace_json(const std::vector<RankParts>& ranks) {
  std::int64_t dropped = 0;
  for (const RankParts& rank : ranks) dropped += rank.dropped;
  std::string out =
      fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"clock":{},"spans left out":{}}},"traceEvents":[)"
                  "\n",
                  json_text(fmt::format("rank 0's; the others are converted, within {}",
                                        to_string(Seconds{clock_error_of(ranks)}))),
                  dropped);
  for (const RankParts& rank : ranks) {
    put_trace_rank(out, rank);
    for (const TracePart& part : rank.parts) put_trace_part(out, rank.rank, part);
  }
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  return out += "\n]}\n";
}

WrittenTrace::WrittenTrace(std::filesystem::path file, const std::vector<spec::RankTrace>& traces)
    : file_(std::move(file)), ranks_(why::divide_traces(traces)) {
  if (ranks_.empty()) {
    throw Error(ErrorCode::kUnavailable, "the ranks gave no trace in time", "run the command again");
  }
  write_file_atomically(file_, trace_json(ranks_));
}

std::string WrittenTrace::text() const {
  std::string out = fmt::format("The trace is in '{}'.", file_.native());
  for (const RankParts& rank : ranks_) {
    const why::PartSums& sums = rank.sums;
    fmt::format_to(
        std::back_inserter(out),
        "\nrank {} on {}: {:.0f}% computing, {:.0f}% waiting for other ranks, {:.0f}% transfer, {:.0f}% the rest",
        rank.rank, rank.node, percent_of(sums.compute, sums.steps), percent_of(sums.waiting, sums.steps),
        percent_of(sums.transfer, sums.steps), percent_of(sums.rest(), sums.steps));
    if (rank.dropped > 0) {
      fmt::format_to(std::back_inserter(out), "; the last {} operations are not in the trace", rank.dropped);
    }
  }
  if (ranks_.size() > 1) {
    fmt::format_to(std::back_inserter(out), "\nThe ranks' clocks are compared within {}.",
                   to_string(Seconds{clock_error_of(ranks_)}));
  }
  return out;
}

Document WrittenTrace::summary() const {
  Document list = Document::list();
  for (const RankParts& rank : ranks_) {
    list.items.push_back(Document::map({{"rank", Document::number(std::int64_t{rank.rank})},
                                        {"node", Document::string(rank.node)},
                                        {"steps_seconds", Document::number(rank.sums.steps)},
                                        {"compute_seconds", Document::number(rank.sums.compute)},
                                        {"waiting_seconds", Document::number(rank.sums.waiting)},
                                        {"transfer_seconds", Document::number(rank.sums.transfer)},
                                        {"clock_error_seconds", Document::number(rank.clock_error)},
                                        {"spans_left_out", Document::number(rank.dropped)}}));
  }
  return Document::map({{"file", Document::string(file_.native())}, {"ranks", std::move(list)}});
}

}  // namespace yoke::bench
