// The options of a measured collective on the command line: those of nccl-tests by the same letters and long names, and
// yoke's own.
#pragma once
#include <filesystem>
#include <limits>
#include <string>

#include "yoke/bench/collective_options.h"
#include "yoke/bench/collective_request.h"
#include "yoke/cli/command.h"
#include "yoke/cli/options.h"

namespace yoke::cli {

inline constexpr int kNotGiven = std::numeric_limits<int>::min();

// As typed; made_of() turns it into options once all is known.
struct BenchArguments {
  std::string size_min = "32M", size_max = "32M", step = "1M";
  std::string type = "float", op = "sum", root = "0", timeout = "30";
  int factor = 1, iterations = 20, warmup = 1, aggregate = 1, cycles = 1, checks = 1;
  int blocking = 0, average = 1, cpu_time = 0, timestamps = 0, per_iteration = 0, per_iteration_skip = 0, unalign = 0;
  int threads = kNotGiven, gpus = kNotGiven, ranks = kNotGiven;
  // Without meaning for ranks on processors: taken, so that scripts go on, and noted.
  int parallel_init = 0, stream_null = 0, graph = 0, local_register = 0, cta_policy = -1, device = 0, device_ctas = 16,
      memory_report = 0;
  BitsPerSecond link_rate{0};  // 0: not given
  int rails = 1;
  std::filesystem::path json_file, csv_file, plot_file, trace_file;
  bool no_history = false, oversubscribe = false;
  std::string transport = "auto", baseline = "nothing";
};

void declare_sizes(OptionTable& table, BenchArguments& arguments);  // those that bench scaling has too
void declare_collective(OptionTable& table, BenchArguments& arguments);

// Throws Error(kUsage). Also reads NCCL_TESTS_MIN_BW.
bench::CollectiveOptions made_of(const BenchArguments& arguments, comm::CollectiveKind kind);
// --ranks, else -t times -g on each of the nodes where either is given, else 0: as many as there are nodes, or two.
int ranks_of(const BenchArguments& arguments, std::size_t nodes = 1);
// As check_launched() takes it.
bench::LaunchedRequest launched_request_of(const BenchArguments& arguments);
// From where the ranks come, checked, with the cluster that the session names; sets the limit that the cluster file or
// the catalogue gives the link where none was given by hand.
bench::RankRequest request_of(const Session& session, const BenchArguments& arguments, int ranks,
                              bench::CollectiveOptions& options);

}  // namespace yoke::cli
