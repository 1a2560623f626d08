#include "yoke/survey/load_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "yoke/base/fields.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/fleet/at_once.h"
#include "yoke/link/processor_load.h"

namespace yoke::survey {

template <class Visitor>
void visit_fields(Visitor& visit, ProcessorSample& sample) {
  visit.required("at", sample.at);
  visit.required("busy", sample.busy);
  visit.required("stolen", sample.stolen);
  visit.required("throttled", sample.throttled);
  visit.required("own", sample.own);
  visit.required("cores", sample.cores);
  visit.required("machine", sample.machine);
}

namespace {

constexpr Seconds kSampleLimit{5};

struct ProcessTimes {
  pid_t parent = 0;
  double ticks = 0;  // its own and those of children that it has waited for
};

// "12 (name) S 1 …" of proc(5): the name may hold anything; the parent is field 4, the times are fields 14 to 17.
std::optional<ProcessTimes> parse_times(std::string_view stat) {
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> fields = split(stat.substr(name_end + 2), ' ');
  if (fields.size() < 15) return std::nullopt;
  ProcessTimes times{.parent = std::atoi(fields[1].c_str())};
  for (std::size_t i = 11; i < 15; ++i) times.ticks += std::strtod(fields[i].c_str(), nullptr);
  return times;
}

// Of this process and of all that descend from it, also those that have ended and are not waited for yet.
Seconds own_time() {
  std::map<pid_t, ProcessTimes> processes;
  const DiskTree tree;
  for (const std::string& entry : tree.list("/proc")) {
    pid_t pid = 0;
    const auto [rest, failure] = std::from_chars(entry.data(), entry.data() + entry.size(), pid);
    if (failure != std::errc{} || rest != entry.data() + entry.size()) continue;
    const auto stat = try_to([&] { return tree.read("/proc/" + entry + "/stat"); });  // it may have gone
    if (!stat || !*stat) continue;
    if (const auto times = parse_times(**stat)) processes[pid] = *times;
  }
  double ticks = 0;
  for (const auto& [pid, times] : processes) {
    // Up to us or to the first process, a few steps; a bound, as numbers may come again while we read.
    pid_t at = pid;
    for (int step = 0; step < 64 && at != getpid() && processes.contains(at); ++step) at = processes[at].parent;
    if (at == getpid()) ticks += times.ticks;
  }
  return {ticks / static_cast<double>(sysconf(_SC_CLK_TCK))};
}

}  // namespace

ProcessorSample sample_processors() {
  const link::ProcessorTimes times = link::read_processor_times();
  return {.at = to_seconds(times.at.time_since_epoch()),
          .busy = times.busy,
          .stolen = times.stolen,
          .throttled = times.throttled,
          .own = own_time(),
          .cores = times.cores,
          .machine = times.machine};
}

double taken_between(std::span<const ProcessorSample> before, std::span<const ProcessorSample> after) {
  const auto window = [&](std::size_t i) { return (after[i].at - before[i].at).value; };
  std::map<std::string, double> own;  // cores, by machine
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (window(i) > 0) own[after[i].machine] += std::max(0.0, (after[i].own - before[i].own).value / window(i));
  }
  double taken = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (window(i) <= 0 || after[i].cores < 1 || after[i].machine != before[i].machine) continue;
    const auto share = [&](Seconds was, Seconds is) { return std::max(0.0, (is - was).value / window(i)); };
    const link::ProcessorLoad load{.busy = share(before[i].busy, after[i].busy),
                                   .stolen = share(before[i].stolen, after[i].stolen),
                                   .throttled = std::min(1.0, share(before[i].throttled, after[i].throttled)),
                                   .cores = after[i].cores,
                                   .machine = after[i].machine};
    taken = std::max(taken, link::taken_share(load, own[after[i].machine]));
  }
  return taken;
}

LoadWatch::LoadWatch(fleet::Fleet& fleet) : fleet_(fleet), before_(sample()) {}

// A node that does not answer is no reason to lose what was measured.
std::vector<std::optional<ProcessorSample>> LoadWatch::sample() {
  std::vector<std::optional<ProcessorSample>> samples;
  for (const auto& answer : fleet::at_once(fleet_.size(), {}, [&](std::size_t i) {
         return from_json<ProcessorSample>(fleet_[i].ask("processor-times", Document::null(), kSampleLimit));
       })) {
    samples.push_back(answer ? std::optional(*answer) : std::nullopt);
  }
  return samples;
}

double LoadWatch::taken() {
  const std::vector<std::optional<ProcessorSample>> now = sample();
  std::vector<ProcessorSample> before, after;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!before_[i] || !now[i]) continue;
    before.push_back(*before_[i]);
    after.push_back(*now[i]);
  }
  return taken_between(before, after);
}

Document answer_processor_times(const Document&, agent::AgentContext&) { return to_document(sample_processors()); }

}  // namespace yoke::survey
