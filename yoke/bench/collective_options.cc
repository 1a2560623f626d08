#include "yoke/bench/collective_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/fields.h"

namespace yoke::bench {
namespace {

constexpr std::size_t kMaxRows = 100'000;  // a table that nobody reads, and a sign of a forgotten -f

// In the order in which nccl-tests goes through `-d all` and `-o all`.
constexpr std::array kTypes = {std::pair{"int8", tensor::DType::kI8}, std::pair{"int32", tensor::DType::kI32},
                               std::pair{"half", tensor::DType::kF16}, std::pair{"float", tensor::DType::kF32},
                               std::pair{"bfloat16", tensor::DType::kBf16}};
constexpr std::array kOps = {std::pair{"sum", comm::ReduceOp::kSum}, std::pair{"max", comm::ReduceOp::kMax},
                             std::pair{"min", comm::ReduceOp::kMin}, std::pair{"avg", comm::ReduceOp::kAvg}};

template <class Value, std::size_t size>
std::vector<Value> parse_name(const std::array<std::pair<const char*, Value>, size>& table, const std::string& name,
                              std::string_view option) {
  std::vector<Value> all;
  std::vector<std::string> names = {"all"};
  for (const auto& [known, value] : table) {
    if (name == known) return {value};
    all.push_back(value);
    names.emplace_back(known);
  }
  if (name == "all") return all;
  throw Error(ErrorCode::kUsage, fmt::format("{} cannot be '{}'", option, printable(name, 40)),
              fmt::format("yoke has {}", fmt::join(names, ", ")));
}

void require(bool holds, const std::string& message, const std::string& hint) {
  if (!holds) throw Error(ErrorCode::kUsage, message, hint);
}

std::size_t next_size(const CollectiveOptions& options, std::size_t size) {
  if (options.factor <= 1) return size + static_cast<std::size_t>(options.step.value);
  return size == 0 ? 16 : size * static_cast<std::size_t>(options.factor);
}

}  // namespace

std::vector<tensor::DType> parse_types(const std::string& name) { return parse_name(kTypes, name, "--datatype"); }
std::vector<comm::ReduceOp> parse_ops(const std::string& name) { return parse_name(kOps, name, "--op"); }

std::string_view nccl_name(tensor::DType type) {
  for (const auto& [name, value] : kTypes) {
    if (value == type) return name;
  }
  YOKE_CHECK(false, "type {}", static_cast<int>(type));
  return {};
}

void validate(const CollectiveOptions& o, int ranks) {
  require(
      o.size_min <= o.size_max,
      fmt::format("the smallest size ({} bytes) is above the largest ({} bytes)", o.size_min.value, o.size_max.value),
      "-b is where the sizes begin, -e where they end; both are 32M unless given");
  require(o.size_max.value <= 1LL << 40, fmt::format("-e {} bytes is more than 1 TiB", o.size_max.value),
          "give a smaller -e");
  const bool several = o.size_min < o.size_max;
  require(!several || o.factor > 1 || o.step.value > 0, "with a step of 0 the sizes never end",
          "give a factor (-f 2) or a step (-i 1M)");
  require(o.factor >= 1, fmt::format("-f cannot be {}", o.factor), "2 doubles the size from row to row");
  const bool few = !several || o.factor > 1 ||
                   static_cast<std::size_t>((o.size_max.value - o.size_min.value) / o.step.value) < kMaxRows;
  require(few, fmt::format("these sizes make more than {} rows", kMaxRows), "double them with -f 2, or raise -i");
  require(o.iterations >= 1, fmt::format("-n cannot be {}", o.iterations), "at least one operation is timed");
  require(o.iterations <= 1'000'000, fmt::format("-n cannot be {}", o.iterations), "at most 1000000");
  require(o.warmup_iterations >= 0, fmt::format("-w cannot be {}", o.warmup_iterations), "0 or more");
  require(o.aggregate >= 1, fmt::format("-m cannot be {}", o.aggregate), "at least 1");
  require(o.cycles >= 0, fmt::format("-N cannot be {}", o.cycles), "0 runs until you stop it");
  require(o.checks >= 0, fmt::format("-c cannot be {}", o.checks), "0 checks nothing, 1 checks each row once");
  require(o.unalign >= 0 && o.unalign <= 4096, fmt::format("-u cannot be {}", o.unalign), "0 to 4096 elements");
  require(o.timeout.value > 0, "-T must be above 0", "the time in which an operation must get on");
  require(o.per_iteration_skip >= 0 && o.per_iteration_skip < o.iterations,
          fmt::format("-K {} leaves nothing of {} iterations", o.per_iteration_skip, o.iterations),
          "skip fewer than -n");
  require(o.root >= -1 && o.root < ranks, fmt::format("there is no rank {} to be the root", o.root),
          fmt::format("ranks are 0 to {}; -1 takes each in turn", ranks - 1));
  YOKE_CHECK(!o.types.empty() && !o.ops.empty());
}

std::vector<std::size_t> row_sizes(const CollectiveOptions& options) {
  std::vector<std::size_t> sizes;
  const auto max = static_cast<std::size_t>(options.size_max.value);
  for (auto size = static_cast<std::size_t>(options.size_min.value); size <= max; size = next_size(options, size)) {
    sizes.push_back(size);
    if (options.size_min == options.size_max) break;
  }
  return sizes;
}

template <class Visitor>
void visit_fields(Visitor& visit, LinkLimit& limit) {
  visit.required("rail_rate", limit.rail_rate);
  visit.required("rails", limit.rails);
  visit.required("source", limit.source);
  visit.optional("share", limit.share);
  visit.optional("path", limit.path);
  visit.optional("excess", limit.excess);
}

template <class Visitor>
void visit_fields(Visitor& visit, CollectiveOptions& o) {
  visit.required("collective", o.kind);
  visit.required("min_bytes", o.size_min);
  visit.required("max_bytes", o.size_max);
  visit.required("step_bytes", o.step);
  visit.required("step_factor", o.factor);
  visit.required("iterations", o.iterations);
  visit.required("warmup_iterations", o.warmup_iterations);
  visit.required("aggregate", o.aggregate);
  visit.required("cycles", o.cycles);
  visit.required("checks", o.checks);
  visit.optional("threads", o.threads);
  visit.optional("gpus", o.gpus);
  visit.required("types", o.types);
  visit.required("ops", o.ops);
  visit.required("root", o.root);
  visit.required("blocking", o.blocking);
  visit.required("average", o.average);
  visit.optional("report_cpu_time", o.report_cpu_time);
  visit.optional("report_timestamps", o.report_timestamps);
  visit.optional("per_iteration", o.per_iteration);
  visit.optional("per_iteration_skip", o.per_iteration_skip);
  visit.optional("unalign", o.unalign);
  visit.required("timeout", o.timeout);
  visit.optional("limit", o.limit);
  visit.optional("bus_bandwidth_wanted", o.bus_bandwidth_wanted);
  visit.optional("notes", o.notes);
  visit.optional("trace", o.trace);
}

Document to_json(const CollectiveOptions& options) { return write_fields(options); }
void from_json(const Document& document, CollectiveOptions& options) { read_fields(document, options); }

}  // namespace yoke::bench
