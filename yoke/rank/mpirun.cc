#include "yoke/rank/mpirun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/fleet/fleet.h"

namespace yoke::rank {
namespace {

using namespace literals;

constexpr std::string_view kErrorMark = "yoke: ";
constexpr std::string_view kHintMark = "  hint: ";

// Where the program lies on all nodes: the same path, or mpirun could not start it.
std::string carry_everywhere(const spec::Cluster& cluster) {
  fleet::Fleet fleet(cluster.nodes, {});
  const auto paths = fleet::all_or_throw(fleet.each("", [](fleet::Node& node) { return node.carried_program(); }));
  for (std::size_t i = 1; i < paths.size(); ++i) {
    if (paths[i] == paths[0]) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{} keeps programs at {}, others at {}", fleet[i].name(), paths[i], paths[0]),
                "mpirun needs the same home folder on all nodes");
  }
  return paths.at(0);
}

void set_default(std::map<std::string, std::string>& environment, const char* name, std::string value) {
  if (!std::getenv(name)) environment.emplace(name, std::move(value));
}

// Open MPI's own choices are made by what is known of the machines; the user's environment has the last word.
std::map<std::string, std::string> open_mpi_settings(const MpirunTask& task) {
  std::map<std::string, std::string> settings = {{task.variable, task.task}};
  set_default(settings, "OMPI_MCA_pml", "ob1");
  set_default(settings, "OMPI_MCA_btl", "self,vader,tcp");
  // One rank a node is bound to its first core otherwise, and in a lab all nodes share that core.
  set_default(settings, "OMPI_MCA_hwloc_base_binding_policy", "none");
  const std::size_t nodes = task.cluster ? task.cluster->nodes.size() : 1;
  if (task.yields || static_cast<unsigned>(task.ranks) > std::thread::hardware_concurrency() * nodes) {
    set_default(settings, "OMPI_MCA_mpi_yield_when_idle", "1");
  }
  if (task.cluster && task.cluster->fabric && !task.cluster->fabric->subnets.empty()) {
    std::vector<std::string> subnets;
    for (const Ipv4Prefix& subnet : task.cluster->fabric->subnets) subnets.push_back(to_string(subnet));
    set_default(settings, "OMPI_MCA_btl_tcp_if_include", fmt::format("{}", fmt::join(subnets, ",")));
  }
  return settings;
}

std::vector<std::string> mpirun_line(const MpirunTask& task, const std::string& program,
                                     const std::optional<std::filesystem::path>& hostfile) {
  std::vector<std::string> line = {"mpirun", "-np", fmt::format("{}", task.ranks), "-x", task.variable};
  if (geteuid() == 0) line.emplace_back("--allow-run-as-root");
  if (hostfile) {
    line.insert(line.end(), {"--hostfile", hostfile->native()});
  } else {
    line.emplace_back("--oversubscribe");
  }
  line.push_back(program);
  line.insert(line.end(), task.arguments.begin(), task.arguments.end());
  return line;
}

// The last words of ranks (print_rank_error), taken out of what mpirun and its ranks write.
class RankErrorParser {
 public:
  // False where the line is none of them.
  bool take(std::string_view line) {
    if (line.starts_with(kHintMark) && !words_.empty()) {
      hint_ = line.substr(kHintMark.size());
      return true;
    }
    if (!line.starts_with(kErrorMark)) return false;
    const std::string word(line.substr(kErrorMark.size()));
    // Ranks that fail alike say the same.
    if (std::find(words_.begin(), words_.end(), word) == words_.end() && words_.size() < kMaxWords) {
      words_.push_back(word);
    }
    return true;
  }

  // mpirun ends as the first rank did that failed, and our ranks as their error says.
  Error error(const Outcome& outcome) const {
    if (words_.empty()) return Error(ErrorCode::kUnavailable, "mpirun " + outcome.describe());
    ErrorCode code = ErrorCode::kUnavailable;
    for (const ErrorCodeInfo& row : error_codes()) {
      if (row.exit_status == outcome.exit_status) code = row.code;
    }
    return Error(code, fmt::format("{}", fmt::join(words_, "; ")), hint_);
  }

 private:
  static constexpr std::size_t kMaxWords = 4;
  std::vector<std::string> words_;
  std::string hint_;
};

}  // namespace

void print_rank_error(const Error& error) {
  fmt::print(stderr, "{}{}\n", kErrorMark, error.message());
  if (!error.hint().empty()) fmt::print(stderr, "{}{}\n", kHintMark, error.hint());
}

std::string open_mpi_hostfile(const std::vector<job::JobNode>& nodes) {
  std::string text;
  for (const job::JobNode& node : nodes) {
    text += fmt::format("{} slots={}", node.node.address, node.ranks);
    if (node.node.user) text += fmt::format(" username={}", *node.node.user);
    if (node.node.port != 22) text += fmt::format(" port={}", node.node.port);
    text += '\n';
  }
  return text;
}

void run_under_mpirun(const MpirunTask& task) {
  if (!is_installed("mpirun")) {
    throw Error(ErrorCode::kNotFound, "mpirun is not installed", "apt-get install openmpi-bin, on every node");
  }
  const std::string program =
      task.cluster ? carry_everywhere(*task.cluster) : std::filesystem::read_symlink("/proc/self/exe").native();
  ScratchDir::remove_abandoned("yoke-mpirun");  // what a killed command left
  const ScratchDir scratch("yoke-mpirun");
  std::optional<std::filesystem::path> hostfile;
  if (task.cluster) {
    hostfile = scratch.path() / "hosts";
    write_file_atomically(*hostfile, open_mpi_hostfile(job::spread_ranks(task.cluster->nodes, task.ranks)));
  }
  RankErrorParser last_words;
  const Outcome outcome = run({.argv = mpirun_line(task, program, hostfile),
                               .environment = open_mpi_settings(task),
                               .timeout = Seconds{24 * 3600},
                               .on_line = [&](OutputStream stream, std::string_view line) {
                                 if (stream == OutputStream::kOut) {
                                   task.on_output(line);
                                 } else if (!last_words.take(line)) {
                                   task.on_error_line(line);
                                 }
                               }});
  if (!outcome.ok()) throw last_words.error(outcome);
}

}  // namespace yoke::rank
