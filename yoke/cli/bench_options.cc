#include "yoke/cli/bench_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"
#include "yoke/bench/path_limit.h"
#include "yoke/bench/size.h"
#include "yoke/bench/trace_file.h"
#include "yoke/cli/cluster_file.h"

namespace yoke::cli {
namespace {

Bytes size_option(std::string_view name, const std::string& text) {
  const auto size = bench::parse_size(text);
  if (!size) throw Error(ErrorCode::kUsage, fmt::format("{}: {}", name, size.error().message()), size.error().hint());
  return *size;
}

double number_option(std::string_view name, const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw Error(ErrorCode::kUsage, fmt::format("{}: '{}' is not a number", name, printable(text, 40)),
                "give a plain number");
  return value;
}

// As nccl-tests has it: seconds, and 0 for no limit. Units are taken too.
Seconds timeout_option(const std::string& text) {
  constexpr Seconds kMax{1e9};  // thirty years are none
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  const auto time = parse_seconds(bare ? text + "s" : text);
  if (!time || time->value < 0)
    throw Error(ErrorCode::kUsage, fmt::format("--timeout: '{}' is not a time", printable(text, 40)),
                "give seconds, or a unit: 30, 500ms, 2min; 0 for no limit");
  return time->value == 0 ? kMax : std::min(*time, kMax);
}

int root_option(const std::string& text) {
  if (text == "all") return -1;
  int root = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), root);
  if (failure != std::errc{} || end != text.data() + text.size())
    throw Error(ErrorCode::kUsage, fmt::format("--root: '{}' is no rank", printable(text, 40)),
                "give a number from 0, or -1 or all for each in turn");
  return root;
}

rank::Transport transport_of(const BenchArguments& a) {
  return from_json<rank::Transport>(Document::string(a.transport));
}
bench::Baseline baseline_of(const BenchArguments& a) {
  return from_json<bench::Baseline>(Document::string(a.baseline));
}

int given_or(int value, int otherwise) { return value == kNotGiven ? otherwise : value; }

std::vector<std::string> notes_of(const BenchArguments& a, comm::CollectiveKind kind) {
  std::vector<std::string> notes;
  const auto note = [&](std::string_view option, bool given) {
    if (given) notes.push_back(fmt::format("{} is ignored: no GPU is used", option));
  };
  note("-p", a.parallel_init != 0);
  note("-y", a.stream_null != 0);
  note("-G", a.graph != 0);
  note("-R", a.local_register != 0);
  note("-x", a.cta_policy != -1);
  note("-D", a.device != 0);
  note("-V", a.device_ctas != 16);
  note("-M", a.memory_report != 0);
  if (kind == comm::CollectiveKind::kAllToAll || kind == comm::CollectiveKind::kSendReceive)
    notes.push_back(
        fmt::format("{} is never in place: the second columns repeat it out of place", comm::to_string(kind)));
  return notes;
}

}  // namespace

void declare_sizes(OptionTable& table, BenchArguments& a) {
  table.value("-b,--minbytes", "SIZE", "smallest size (default 32M); K, M, G are powers of 1024", a.size_min);
  table.value("-e,--maxbytes", "SIZE", "largest size (default 32M)", a.size_max);
  table.value("-i,--stepbytes", "SIZE", "step between sizes if no factor is given (1M)", a.step);
  table.value("-f,--stepfactor", "N", "factor between sizes", a.factor);
  table.value("-n,--iters", "N", "timed operations per size (20)", a.iterations);
  table.value("-w,--warmup_iters", "N", "warm-up operations per size (1)", a.warmup);
  table.value("-c,--check", "N", "how often each result is checked (1); 0: no check", a.checks);
  table.value("-o,--op", "OP", "sum, max, min, avg or all (sum)", a.op);
  table.value("-d,--datatype", "TYPE", "int8, int32, half, float, bfloat16 or all (float)", a.type);
  table.value("-T,--timeout", "TIME", "fail if an operation makes no progress for TIME (30 s); 0: no limit", a.timeout);
  table.choice("--transport", "KIND", "what carries the data: direct, mpi, nccl or threads (auto)",
               {"auto", "direct", "mpi", "nccl", "threads"}, a.transport);
  table.flag("--oversubscribe", "allow more than four ranks for each core", a.oversubscribe);
  table.flag("--no-history", "do not keep this run in the history", a.no_history);
}

void declare_collective(OptionTable& table, BenchArguments& a) {
  table.value("--ranks", "N", "how many ranks in all (one a node, or two on this machine)", a.ranks);
  declare_sizes(table, a);
  table.value("-m,--agg_iters", "N", "operations in one iteration (1)", a.aggregate);
  table.value("-N,--run_cycles", "N", "how often all sizes are gone through (1); 0: until you stop it", a.cycles);
  table.value("-r,--root", "RANK", "the root, or -1 or all for each in turn (0)", a.root);
  table.value("-z,--blocking", "0-3",
              "1: wait and barrier after each iteration, 2: wait, 3: as 1 without the barrier's time (0)", a.blocking,
              {0, 3});
  table.value("-a,--average", "0-3", "the time of 0: rank 0, 1: the mean, 2: the fastest, 3: the slowest rank (1)",
              a.average, {0, 3});
  table.value("-C,--report_cputime", "0|1", "1: the time until operations were handed over", a.cpu_time);
  table.value("-S,--report_timestamps", "0|1", "1: the time of day at each row", a.timestamps);
  table.value("-I,--per_iter_timing", "0|1", "1: columns and JSON of single iterations", a.per_iteration);
  table.value("-K,--per_iter_skip", "N", "iterations left out of the spread at the start of each size (0)",
              a.per_iteration_skip);
  table.value("-u,--unalign", "N", "begin the buffers N elements off their alignment (0)", a.unalign);
  table.value("-J,--output_file", "FILE.json", "also write the JSON of nccl-tests; an existing file stays",
              a.json_file);
  table.choice("--compare-with", "WHAT", "time it in turns with plain MPI, plain NCCL or a bare socket exchange",
               {"nothing", "mpi", "nccl", "socket"}, a.baseline);
  table.value("--csv", "FILE", "also write the rows as CSV; an existing file stays", a.csv_file);
  table.value("--trace", "FILE", bench::kTraceHelp, a.trace_file);
  table.value("--plot", "FILE.svg", "also draw bus bandwidth over size", a.plot_file);
  table.value("--link-rate", "RATE", "what one rail of the slowest link carries (such as 100Gb/s), for the verdict",
              a.link_rate);
  table.value("--rails", "N", "how many rails the link has (1)", a.rails, {.min = 1});
  table.value("-t,--nthreads", "N", "with -g: ranks on each node (or on this machine), as in nccl-tests", a.threads);
  table.value("-g,--ngpus", "N", "with -t: ranks on each node (or on this machine), as in nccl-tests", a.gpus);
  table.value("-p,--parallel_init", "0|1", "accepted for compatibility, ignored", a.parallel_init);
  table.value("-y,--stream_null", "0|1", "accepted for compatibility, ignored", a.stream_null);
  table.value("-G,--cudagraph", "N", "accepted for compatibility, ignored", a.graph);
  table.value("-R,--local_register", "0-2", "accepted for compatibility, ignored", a.local_register);
  table.value("-x,--cta_policy", "0-2", "accepted for compatibility, ignored", a.cta_policy);
  table.value("-D,--device_implementation", "N", "accepted for compatibility, ignored", a.device);
  table.value("-V,--device_cta_count", "N", "accepted for compatibility, ignored", a.device_ctas);
  table.value("-M,--memory", "0|1", "accepted for compatibility, ignored", a.memory_report);
}

bench::CollectiveOptions made_of(const BenchArguments& a, comm::CollectiveKind kind) {
  bench::CollectiveOptions options{.kind = kind,
                                   .size_min = size_option("--minbytes", a.size_min),
                                   .size_max = size_option("--maxbytes", a.size_max),
                                   .step = size_option("--stepbytes", a.step),
                                   .factor = a.factor,
                                   .iterations = a.iterations,
                                   .warmup_iterations = a.warmup,
                                   .aggregate = a.aggregate,
                                   .cycles = a.cycles,
                                   .checks = a.checks,
                                   .threads = given_or(a.threads, 1),
                                   .gpus = given_or(a.gpus, 1),
                                   .types = bench::parse_types(a.type),
                                   .ops = bench::parse_ops(a.op),
                                   .root = root_option(a.root),
                                   .blocking = static_cast<bench::Blocking>(a.blocking),
                                   .average = static_cast<bench::RankAverage>(a.average),
                                   .report_cpu_time = a.cpu_time != 0,
                                   .report_timestamps = a.timestamps != 0,
                                   .per_iteration = a.per_iteration != 0,
                                   .per_iteration_skip = a.per_iteration_skip,
                                   .unalign = a.unalign,
                                   .timeout = timeout_option(a.timeout),
                                   .notes = notes_of(a, kind),
                                   .trace = !a.trace_file.empty()};
  if (a.link_rate.value > 0)
    options.limit = bench::LinkLimit{.rail_rate = a.link_rate, .rails = a.rails, .source = "--link-rate"};
  if (const char* wanted = std::getenv("NCCL_TESTS_MIN_BW"); wanted && *wanted)
    options.bus_bandwidth_wanted = number_option("NCCL_TESTS_MIN_BW", wanted);
  for (const char* split : {"NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK"}) {
    if (const char* wanted = std::getenv(split); wanted && *wanted)
      throw Error(ErrorCode::kUsage, fmt::format("{} is set, but yoke measures one group of all ranks", split),
                  "unset it; --ranks makes the group smaller");
  }
  const std::string name = a.json_file.native();
  if (!name.empty() && !name.ends_with(".json"))
    throw Error(ErrorCode::kUsage, fmt::format("--output_file '{}' does not end in .json", printable(name, 80)),
                "only JSON is written by -J; --csv writes CSV");
  return options;
}

int ranks_of(const BenchArguments& a, std::size_t nodes) {
  const bool as_nccl = a.threads != kNotGiven || a.gpus != kNotGiven;
  if (a.ranks == kNotGiven && !as_nccl) return 0;
  const long each = long{given_or(a.threads, 1)} * given_or(a.gpus, 1);
  const long ranks = a.ranks == kNotGiven ? each * static_cast<long>(std::max<std::size_t>(1, nodes)) : a.ranks;
  if (ranks < 1 || ranks > 256)
    throw Error(ErrorCode::kUsage, fmt::format("there cannot be {} ranks", ranks),
                "1 to 256; more than the cores of a node take turns");
  return static_cast<int>(ranks);
}

bench::LaunchedRequest launched_request_of(const BenchArguments& a) {
  return {.ranks = a.ranks == kNotGiven ? std::nullopt : std::optional(a.ranks),
          .ranks_per_process = ranks_of({.threads = a.threads, .gpus = a.gpus}),
          .transport = transport_of(a),
          .baseline = baseline_of(a)};
}

bench::RankRequest request_of(const Session& session, const BenchArguments& a, int ranks,
                              bench::CollectiveOptions& options) {
  bench::RankRequest request{
      .ranks = ranks, .transport = transport_of(a), .baseline = baseline_of(a), .oversubscribe = a.oversubscribe};
  request.on_notice = Session::note;
  if (find_cluster_file(session)) request.cluster = load_session_cluster(session);
  bench::validate(options, bench::rank_count(request));
  bench::check_request(request, options);
  const bool over_links = request.cluster && request.cluster->nodes.size() > 1 && bench::rank_count(request) > 1 &&
                          request.transport != rank::Transport::kThreads;
  if (!over_links) return request;
  if (!options.limit) {
    options.limit = bench::limit_of(*request.cluster, {options.kind, rank_count(request), transport_of(request)});
  }
  return request;
}

}  // namespace yoke::cli
