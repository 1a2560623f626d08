#include "yoke/watch/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "yoke/check/live.h"
#include "yoke/check/rule.h"
#include "yoke/spec/hardware.h"

namespace yoke::watch {
namespace {

using namespace literals;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kHistoryStep = 0.95;  // seconds: faster samples share a row
constexpr std::size_t kMaxMarks = 1000;
constexpr int kIdlePercent = 5;
constexpr double kEvaluationGap = 0.1;  // seconds

std::optional<BitsPerSecond> larger(const std::optional<BytesPerSecond>& a, const std::optional<BytesPerSecond>& b) {
  if (!a && !b) return std::nullopt;
  return to_bits_per_second(std::max(a.value_or(BytesPerSecond{}), b.value_or(BytesPerSecond{})));
}

const spec::Rail* listed_rail(const spec::ClusterNode& place, const std::string& interface) {
  for (const spec::Rail& rail : place.rails) {
    if (rail.interface == interface) return &rail;
  }
  return nullptr;
}

// Which nodes a rail leads to, by the networks of the cluster file.
std::string peers_of(const spec::Cluster& cluster, std::size_t node, const std::string& interface) {
  const spec::Rail* own = listed_rail(cluster.nodes[node], interface);
  if (!own) return {};
  std::string peers;
  for (std::size_t other = 0; other < cluster.nodes.size(); ++other) {
    if (other == node) continue;
    for (const spec::Rail& rail : cluster.nodes[other].rails) {
      if (own->address.contains(rail.address.address)) {
        peers += cluster.nodes[other].name + " ";
        break;
      }
    }
  }
  return peers;
}

std::optional<BitsPerSecond> expected_rate(const spec::Cluster& cluster) {
  if (cluster.fabric && cluster.fabric->rail_rate) return cluster.fabric->rail_rate;
  const spec::Hardware* hardware = cluster.hardware ? spec::find_hardware(*cluster.hardware) : nullptr;
  return hardware ? std::optional(hardware->rail_rate) : std::nullopt;
}

std::string rail_title(const RailSample& rail, const Sample& sample) {
  if (!rail.rail) return {};
  std::set<int> ports;
  for (const RailSample& other : sample.rails) {
    if (other.rail && other.port && other.carrier) ports.insert(*other.port);
  }
  return ports.size() > 1 && rail.port ? fmt::format("{}{}", *rail.port, *rail.rail) : *rail.rail;
}

bool is_idle(const BoardNode& node) {
  const std::vector<GpuSample>& gpus = node.sample->gpus;
  if (gpus.empty()) return node.rates.cpu_busy.value_or(0) * 100 < kIdlePercent;
  return std::all_of(gpus.begin(), gpus.end(),
                     [](const GpuSample& gpu) { return gpu.utilization_percent.value_or(0) < kIdlePercent; });
}

std::map<std::string, double> history_row(const BoardNode& node) {
  std::map<std::string, double> row;
  const auto put = [&](std::string name, auto value) {
    if (value) row[std::move(name)] = static_cast<double>(*value);
  };
  const auto value_of = [](const auto& quantity) {
    return quantity ? std::optional(static_cast<double>(quantity->value)) : std::nullopt;
  };
  if (node.rates.cpu_busy) row["cpu"] = *node.rates.cpu_busy * 100;
  put("memory", value_of(node.sample->memory.available));
  for (const BoardRail& rail : node.rails) {
    if (!rail.is_listed && (rail.title.empty() || !rail.sample.carrier)) continue;  // no rail, or without a cable
    put("rail/" + rail.interface + "/in", value_of(rail.in));
    put("rail/" + rail.interface + "/out", value_of(rail.out));
  }
  for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
    const GpuSample& gpu = node.sample->gpus[i];
    const std::string prefix = fmt::format("gpu/{}/", gpu.index);
    put(prefix + "nvlink/in", value_of(node.rates.gpus[i].nvlink_received));
    put(prefix + "nvlink/out", value_of(node.rates.gpus[i].nvlink_sent));
    put(prefix + "busy", gpu.utilization_percent);
    put(prefix + "clock", gpu.sm_clock_mhz);
    put(prefix + "power", gpu.power_w);
    put(prefix + "temperature", gpu.temperature_c);
  }
  put("tokens", node.tokens_per_second);
  return row;
}

check::LiveNode live_node(const Board& board, std::size_t place) {
  const BoardNode& node = board.nodes()[place];
  const spec::Cluster& cluster = board.plan().cluster;
  check::LiveNode live{.name = node.name};
  live.unified = node.machine && node.machine->memory.unified;
  live.memory_available = node.sample->memory.available;
  live.memory_change = node.rates.memory_available_change;
  live.memory_some = node.rates.memory_some;
  if (!cluster.lab) live.disk_free = node.sample->disk_free;  // nodes of a lab share this machine's disk
  live.has_gpus = !node.sample->gpus.empty();
  for (const BoardRail& rail : node.rails) {
    if (!rail.is_listed) continue;
    check::LiveRail found{
        .interface = rail.interface,
        .title = rail.title.empty() ? rail.interface : fmt::format("rail {} ({})", rail.title, rail.interface),
        .group = peers_of(cluster, place, rail.interface),
        .works = rail.sample.carrier,
        .expected = expected_rate(cluster),
        .errors = rail.rates.errors,
        .retransmits = rail.rates.retransmits,
        .discards_received = rail.rates.discards_received};
    if (rail.rates.pauses_sent) {  // what a NIC has counted comes every few seconds
      found.pauses_sent = *rail.rates.pauses_sent / std::max(node.rates.elapsed, kSlowPeriod).value;
    }
    if (rail.in || rail.out)
      found.carried = std::max(rail.in.value_or(BitsPerSecond{}), rail.out.value_or(BitsPerSecond{}));
    live.rails.push_back(std::move(found));
  }
  for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
    const GpuSample& gpu = node.sample->gpus[i];
    if (gpu.lost) continue;
    live.gpus.push_back({.index = gpu.index,
                         .clock_mhz = gpu.sm_clock_mhz,
                         .temperature_c = gpu.temperature_c,
                         .clock_limits = gpu.clock_limits,
                         .thermal_share = node.rates.gpus[i].thermal_share,
                         .xids = node.rates.gpus[i].xids,
                         .ecc_uncorrected = node.rates.gpus[i].ecc_uncorrected,
                         .xid_last = gpu.xid_last});
  }
  for (std::size_t i = 0; i < node.sample->engines.size(); ++i) {
    const EngineSample& engine = node.sample->engines[i];
    live.engines.push_back({.kind = engine.kind,
                            .port = engine.port,
                            .running = engine.running,
                            .waiting = engine.waiting,
                            .tokens_per_second = node.rates.engines[i].generated_tokens,
                            .answers = engine.canary_up,
                            .restarts = node.past.restarts(engine.port, board.now())});
  }
  return live;
}

}  // namespace

void History::add(double time, const std::map<std::string, double>& values) {
  if (!times_.empty() && time - times_.back() < kHistoryStep) return;
  times_.push_back(time);
  for (const auto& [name, value] : values) {
    std::deque<float>& series = series_[name];
    series.resize(times_.size() - 1, static_cast<float>(kNothing));
    series.push_back(static_cast<float>(value));
  }
  for (auto& [name, series] : series_) series.resize(times_.size(), static_cast<float>(kNothing));
  if (times_.size() <= rows_max_) return;
  times_.pop_front();
  for (auto& [name, series] : series_) series.pop_front();
}

std::vector<double> History::last(const std::string& name, std::size_t count) const {
  const auto found = series_.find(name);
  if (found == series_.end()) return {};
  const std::size_t size = found->second.size();
  return {found->second.end() - static_cast<std::ptrdiff_t>(std::min(count, size)), found->second.end()};
}

std::optional<Seconds> Board::clock_ahead(const BoardNode& node) const {
  const BoardNode& first = nodes_.front();
  const auto offset = node.past.clock_offset();
  const auto reference = first.past.clock_offset();
  if (&first == &node || !offset || !reference) return std::nullopt;
  return *offset - *reference;
}

Seconds silence_limit(Seconds interval) { return std::max(2.5_s, 2.5 * interval); }

Board::Board(WatchPlan plan, std::size_t history_rows) : plan_(std::move(plan)) {
  for (const spec::ClusterNode& node : plan_.cluster.nodes) {
    nodes_.push_back({.name = node.name, .history = History(history_rows)});
  }
}

void Board::take_sample(BoardNode& node, double time, const Sample& sample) {
  const double elapsed = node.heard ? time - *node.heard : 0;
  node.before = node.silent ? std::nullopt : std::exchange(node.sample, std::nullopt);
  node.sample = sample;
  node.heard = time;
  node.silent = false;
  node.problem.reset();
  node.rates = rates_between(node.before ? &*node.before : nullptr, sample);
  node.rails.clear();
  const std::size_t place = static_cast<std::size_t>(&node - nodes_.data());
  for (std::size_t i = 0; i < sample.rails.size(); ++i) {
    const RailRates& rates = node.rates.rails[i];
    // In a lab the RDMA counters are copies of the interface's, a second late.
    const bool mirrored = plan_.cluster.lab.has_value();
    const std::optional<BytesPerSecond> none;
    node.rails.push_back({.interface = sample.rails[i].interface,
                          .title = rail_title(sample.rails[i], sample),
                          .is_listed = listed_rail(plan_.cluster.nodes[place], sample.rails[i].interface) != nullptr,
                          .sample = sample.rails[i],
                          .rates = rates,
                          .in = larger(rates.received, mirrored ? none : rates.rdma_received),
                          .out = larger(rates.sent, mirrored ? none : rates.rdma_sent)});
  }
  std::stable_sort(node.rails.begin(), node.rails.end(), [](const BoardRail& a, const BoardRail& b) {
    return a.is_listed != b.is_listed ? a.is_listed : a.title.empty() < b.title.empty();
  });
  node.tokens_per_second.reset();
  for (std::size_t i = 0; i < sample.engines.size(); ++i) {
    const auto rate = node.rates.engines[i].generated_tokens;
    const auto tokens = rate ? rate : sample.engines[i].tokens_per_second;
    if (tokens) node.tokens_per_second = node.tokens_per_second.value_or(0) + *tokens;
  }
  if (node.before && elapsed > 0) {
    node.watched_seconds += elapsed;
    if (is_idle(node)) node.idle_seconds += elapsed;
  }
  node.past.take(time, sample);
  node.history.add(time, history_row(node));
  note_jobs(node);
}

void Board::note_jobs(const BoardNode& node) {
  if (!node.before) return;
  const auto has = [](const Sample& sample, const JobSample& job) {
    return std::any_of(sample.jobs.begin(), sample.jobs.end(),
                       [&](const JobSample& other) { return other.name == job.name && other.since == job.since; });
  };
  for (const JobSample& job : node.sample->jobs) {
    if (has(*node.before, job)) continue;
    marks_.push_back({now_, fmt::format("{} begins{}{}", job.name, job.command.empty() ? "" : ": ", job.command)});
  }
  for (const JobSample& job : node.before->jobs) {
    if (!has(*node.sample, job)) marks_.push_back({now_, fmt::format("{} ends", job.name)});
  }
  if (marks_.size() > kMaxMarks) marks_.erase(marks_.begin(), marks_.end() - kMaxMarks);
}

std::vector<FindingChange> Board::take(const Observation& observation) {
  if (observation.node >= nodes_.size()) return {};
  BoardNode& node = nodes_[observation.node];
  now_ = std::max(now_, observation.time);
  if (observation.machine) node.machine = observation.machine;
  if (observation.problem) {
    node.problem = observation.problem;
    if (!node.heard) node.silent = true;
  }
  if (observation.sample) take_sample(node, observation.time, *observation.sample);
  return tick(now_);
}

std::vector<FindingChange> Board::tick(double now) {
  now_ = std::max(now_, now);
  const double limit = silence_limit(plan_.interval).value;
  for (BoardNode& node : nodes_) {
    if (node.heard && now_ - *node.heard > limit) node.silent = true;
  }
  // The samples of many nodes come at nearly the same time: once for all of them.
  if (now_ - evaluated_ < kEvaluationGap) return {};
  evaluated_ = now_;
  return evaluate();
}

std::vector<FindingChange> Board::evaluate() {
  std::vector<spec::Finding> found;
  for (spec::Finding& finding : check::evaluate(survey_of(*this), check::kNeedsLinks | check::kNeedsFacts)) {
    if (!check::is_live_rule(finding.rule)) continue;
    if (finding.rule == "node-unreachable") finding.consequence = "nothing is known of it until it answers again";
    if (finding.rule == "clock-skew") finding.evidence = "against the clock of " + nodes_.front().name;
    found.push_back(std::move(finding));
  }
  std::vector<check::LiveNode> live;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].sample && !nodes_[i].silent) live.push_back(live_node(*this, i));
  }
  for (spec::Finding& finding : check::evaluate_live(live)) found.push_back(std::move(finding));
  return findings_.take(now_, found);
}

std::optional<std::string> Board::series_of(const spec::Finding& finding) const {
  const std::string subject = finding.subject.value_or("");
  if (subject.starts_with("GPU ")) return fmt::format("gpu/{}/clock", subject.substr(4));
  if (finding.rule.starts_with("memory")) return "memory";
  if (finding.rule.starts_with("engine")) return "tokens";
  for (const BoardNode& node : nodes_) {
    if (node.name != finding.node) continue;
    for (const BoardRail& rail : node.rails) {
      if (rail.interface == subject) return "rail/" + subject + "/in";
    }
  }
  return std::nullopt;
}

}  // namespace yoke::watch
