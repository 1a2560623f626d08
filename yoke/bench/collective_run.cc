#include "yoke/bench/collective_run.h"

#include <unistd.h>

#include <array>
#include <ctime>

#include "yoke/base/fields.h"
#include "yoke/base/file_tree.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/probe/available_memory.h"

namespace yoke::bench {

template <class Visitor>
void visit_fields(Visitor& visit, RankFacts& facts) {
  visit.required("host", facts.host);
  visit.required("pid", facts.pid);
  visit.required("device", facts.device);
  visit.required("bus", facts.bus);
  visit.required("device_name", facts.device_name);
  visit.required("memory", facts.memory);
  visit.required("memory_available", facts.memory_available);
  visit.required("gpu_memory_available", facts.gpu_memory_available);
}

template <class Visitor>
void visit_fields(Visitor& visit, SampleStats& stats) {
  visit.required("min", stats.min);
  visit.required("max", stats.max);
  visit.required("mean", stats.mean);
  visit.required("p25", stats.p25);
  visit.required("p50", stats.p50);
  visit.required("p75", stats.p75);
  visit.required("p95", stats.p95);
  visit.required("p99", stats.p99);
  visit.required("deviation", stats.deviation);
}

template <class Visitor>
void visit_fields(Visitor& visit, Straggler& straggler) {
  visit.required("rank", straggler.rank);
  visit.required("late", straggler.late);
}

template <class Visitor>
void visit_fields(Visitor& visit, PlacementResult& result) {
  visit.required("time", result.time);
  visit.required("cpu_time", result.cpu_time);
  visit.required("alg_bw", result.algorithm_bandwidth);
  visit.required("bus_bw", result.bus_bandwidth);
  visit.optional("wrong", result.wrong);
  visit.optional("rank_times", result.rank_times);
  visit.optional("rank_late", result.rank_late);
  visit.required("stats", result.stats);
  visit.required("straggler", result.straggler);
  visit.optional("iterations", result.iterations);
}

template <class Visitor>
void visit_fields(Visitor& visit, BaselineResult& result) {
  visit.required("ours", result.ours);
  visit.required("theirs", result.theirs);
  visit.optional("wrong", result.wrong);
}

template <class Visitor>
void visit_fields(Visitor& visit, CollectiveRow& row) {
  visit.required("size", row.size);
  visit.required("count", row.count);
  visit.required("type", row.type);
  visit.required("op", row.op);
  visit.required("root", row.root);
  visit.required("out_of_place", row.out_of_place);
  visit.required("in_place", row.in_place);
  visit.optional("baseline", row.baseline);
  visit.required("time", row.time);
}

template <class Visitor>
void visit_fields(Visitor& visit, Failure& failure) {
  visit.required("code", failure.code);
  visit.required("message", failure.message);
  visit.required("hint", failure.hint);
}

template <class Visitor>
void visit_fields(Visitor& visit, CollectiveRun& run) {
  visit.required("transport", run.transport);
  visit.required("ranks", run.ranks);
  visit.optional("baseline", run.baseline);
  visit.optional("reduced_to", run.reduced_to);
  visit.required("rows", run.rows);
  visit.required("started", run.started);
  visit.required("ended", run.ended);
  visit.optional("failure", run.failure);
  visit.optional("traces", run.traces);
}

Document to_json(const RankFacts& facts) { return write_fields(facts); }
void from_json(const Document& document, RankFacts& facts) { read_fields(document, facts); }
Document to_json(const CollectiveRow& row) { return write_fields(row); }
void from_json(const Document& document, CollectiveRow& row) { read_fields(document, row); }

Document to_json(const CollectiveRun& run) {
  Document document = Document::map({{"options", to_json(run.options)}});
  for (auto& [key, value] : write_fields(run).fields) document.add(key, value);
  document.add("wrong", Document::number(run.wrong()));
  document.add("mean_bus_bandwidth", Document::number(run.mean_bus_bandwidth()));
  document.add("passed", Document::boolean(run.passed()));
  return document;
}

void from_json(const Document& document, CollectiveRun& run) {
  Document rest = document;
  std::erase_if(rest.fields, [&](const Document::Field& field) {
    if (field.first == "options") run.options = from_json<CollectiveOptions>(field.second);
    return field.first == "options" || field.first == "wrong" || field.first == "mean_bus_bandwidth" ||
           field.first == "passed";
  });
  read_fields(rest, run);
}

std::int64_t CollectiveRun::wrong() const {
  std::int64_t sum = 0;
  for (const CollectiveRow& row : rows) {
    sum += row.out_of_place.wrong.value_or(0) + row.in_place.wrong.value_or(0);
    if (row.baseline) sum += row.baseline->wrong.value_or(0);
  }
  return sum;
}

double CollectiveRun::mean_bus_bandwidth() const {
  double sum = 0;
  for (const CollectiveRow& row : rows) sum += row.out_of_place.bus_bandwidth + row.in_place.bus_bandwidth;
  return rows.empty() ? 0 : sum / static_cast<double>(2 * rows.size());
}

bool CollectiveRun::passed() const {
  // As nccl-tests has it, a tenth below what was wanted still passes.
  const bool fast_enough = !options.bus_bandwidth_wanted || mean_bus_bandwidth() >= *options.bus_bandwidth_wanted * 0.9;
  return !failure && wrong() == 0 && fast_enough && ranks.size() != 1;
}

Failure failure_of(const Error& error) {
  return {.code = std::string(info(error.code()).name), .message = error.message(), .hint = error.hint()};
}

Error to_error(const Failure& failure) {
  ErrorCode code = ErrorCode::kInternal;
  for (const ErrorCodeInfo& row : error_codes()) {
    if (row.name == failure.code) code = row.code;
  }
  return {code, failure.message, failure.hint};
}

RankFacts facts_of_this_process(int device) {
  const MachineFacts machine = facts_of_this_machine(DiskTree());
  const auto available = probe::available_memory(DiskTree());
  return {.host = machine.host,
          .pid = static_cast<int>(getpid()),
          .device = device,
          .device_name = machine.processor,
          .memory_available = available ? available->value : 0};
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return {text.data(), size};
}

}  // namespace yoke::bench
