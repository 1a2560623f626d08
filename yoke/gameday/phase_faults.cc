// The phases in which something breaks during work: a rank is killed, half of the cable is cut. What was begun must end
// as if nothing had happened.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/gameday/lab_fault.h"
#include "yoke/gameday/phases.h"
#include "yoke/rank/rank_part.h"
#include "yoke/serve/engine_task.h"

namespace yoke {
namespace {

// By which the process of a rank is known: the words of its command line.
const std::string kRankWords = fmt::format("{} {}", kRankWord, kEngineKind);

// An answer as it streams, with something happening once a third of it has come.
struct Broken {
  std::string text;
  std::string notices;  // of standard error
  bool happened = false;
  bool ok = false;
  Seconds pause{};  // the longest between two pieces of text, from the event on
};

Broken ask_and_break(Venue& venue, Scene& scene, const std::function<void(pid_t)>& happen) {
  Broken broken;
  const std::size_t third = venue.answer->text.size() / 3;
  std::vector<std::string> arguments = question(venue.model_played);
  const std::vector<std::string> where = on_all_nodes(venue);
  arguments.insert(arguments.end(), where.begin(), where.end());
  Instant last = real_clock().now();
  const Outcome outcome = scene.run(arguments, {.on_output = [&](pid_t process, std::string_view out) {
                                      const Instant now = real_clock().now();
                                      if (broken.happened)
                                        broken.pause = std::max(broken.pause, to_seconds(now - last));
                                      last = now;
                                      if (broken.happened || out.size() < third) return;
                                      broken.happened = true;
                                      happen(process);
                                    }});
  broken.ok = outcome.ok();
  broken.text = trim(outcome.out);
  broken.notices = outcome.err;
  scene.say(outcome.err);
  return broken;
}

// `noticed` is what the command must have told: else the answer is the same because nothing happened to it.
void expect_same_answer(Venue& venue, Scene& scene, const Broken& broken, const std::string& noticed) {
  scene.say(broken.text);
  scene.expect(broken.happened, "it happened before the answer was complete");
  scene.expect(broken.notices.find(noticed) != std::string::npos, fmt::format("it was noticed: '{}'", noticed));
  scene.expect(broken.ok && broken.text == trim(venue.answer->text), "the answer is the same as before");
  scene.figure({.name = "pause", .value = broken.pause.value, .unit = "s"});
  scene.block(HtmlFacts{{{"answered", broken.text}, {"told meanwhile", broken.notices}}});
}

bool descends_from(pid_t process, pid_t ancestor) {
  while (process > 1 && process != ancestor) {
    const auto stat = DiskTree().read(fmt::format("/proc/{}/stat", process));
    const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;  // a name may hold anything
    if (name_end == std::string::npos) return false;
    const std::vector<std::string> fields = split(trim(std::string_view(*stat).substr(name_end + 1)), ' ');
    process = fields.size() > 1 ? std::atoi(fields[1].c_str()) : 0;
  }
  return process == ancestor;
}

// The rank of this very command that runs on this machine: never one of somebody else's engine.
pid_t find_rank_below(pid_t command) {
  for (const std::string& name : DiskTree().list("/proc")) {
    const pid_t pid = std::atoi(name.c_str());
    if (pid <= 0) continue;
    std::string words = DiskTree().read(fmt::format("/proc/{}/cmdline", pid)).value_or("");
    std::replace(words.begin(), words.end(), '\0', ' ');
    if (words.find(kRankWords) != std::string::npos && descends_from(pid, command)) return pid;
  }
  throw Error(ErrorCode::kNotFound, "no rank of the answer runs on this machine",
              "begin the game day on a node of the cluster");
}

// The head's rank on a cluster; in a lab, whose nodes run nothing else, that of the last node.
void kill_a_rank(const Venue& venue, Scene& scene, pid_t command) {
  if (!venue.lab() || venue.why_no_faults()) {
    const pid_t rank = find_rank_below(command);
    scene.say(fmt::format("$ kill -KILL {}", rank));
    if (kill(rank, SIGKILL) != 0) throw system_error(errno, "cannot kill the rank");
    return;
  }
  const std::string node = venue.cluster().nodes.back().name;
  const Outcome killed =
      scene.run({"lab", "exec", "--name", *venue.lab(), node, "--", "pkill", "-KILL", "-f", kRankWords});
  scene.expect(killed.ok(), fmt::format("the rank on {} is killed", node));
}

// The bus bandwidths of an all-reduce's table as it is printed; lines that begin with # are no rows.
std::vector<double> bandwidths_of(std::string_view table) {
  std::vector<double> found;
  for (const std::string& line : split(table, '\n')) {
    std::vector<std::string> cells = split(line, ' ');
    std::erase(cells, "");
    if (cells.size() > 7 && cells[0] != "#") found.push_back(std::atof(cells[7].c_str()));
  }
  return found;
}

void cut_during_all_reduce(Venue& venue, Scene& scene) {
  LabFault half(venue, scene);
  std::size_t rows_before = 0;
  const Outcome outcome = scene.run({"bench", "all-reduce", "-b", "8M", "-e", "8M", "-n", "5", "-N", "8",
                                     "--no-history", "--cluster", venue.cluster_word()},
                                    {.on_output = [&](pid_t, std::string_view out) {
                                      if (rows_before > 0 || bandwidths_of(out).empty()) return;
                                      rows_before = bandwidths_of(out).size();
                                      half.make("half-down", "half B is cut");
                                    }});
  scene.say(outcome.err);
  scene.block(HtmlPreformatted{outcome.out + outcome.err});
  const std::vector<double> rows = bandwidths_of(outcome.out);
  scene.expect(outcome.err.find("going on with half A") != std::string::npos, "the cut is noticed");
  scene.expect(outcome.ok(), "the all-reduce goes on with half A, every result right");
  scene.expect(rows_before > 0 && rows_before < rows.size(), "it was cut in the midst");
  if (!rows.empty()) {
    scene.figure({.name = "both halves", .value = rows.front(), .unit = "GB/s"});
    scene.figure({.name = "one half", .value = rows.back(), .unit = "GB/s"});
  }
  half.clear();
}

}  // namespace

void play_kill(Venue& venue, Scene& scene) {
  const Broken broken = ask_and_break(venue, scene, [&](pid_t command) { kill_a_rank(venue, scene, command); });
  expect_same_answer(venue, scene, broken, "starting again what is missing");
}

void play_cut(Venue& venue, Scene& scene) {
  cut_during_all_reduce(venue, scene);
  if (!venue.answer) return scene.say("no answer to be cut: phase model was not played");
  LabFault half(venue, scene);
  const Broken broken = ask_and_break(venue, scene, [&](pid_t) { half.make("half-down", "half B is cut"); });
  expect_same_answer(venue, scene, broken, "going on with half A");
  half.clear();
}

}  // namespace yoke
