// What a phase plays on: it runs the program's own commands, as a user would type them, shows and keeps what came out,
// and decides the verdict by expectations. The first that does not hold is the reason of a failure; the phase goes on,
// so that its figures are told too.
//
//   const Document reached = phase_run.run_json({"cluster", "reach", "--cluster", file});
//   phase_run.expect(all, "every node is reached");
//   phase_run.figure({.name = "login", .value = 0.3, .unit = "s"});
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/process.h"
#include "yoke/gameday/environment.h"
#include "yoke/gameday/result.h"

namespace yoke::gameday {

struct RunOptions {
  Seconds limit{300};              // an answer on a machine that does much else takes minutes
  std::vector<int> answers = {0};  // the exit statuses with which --json tells an answer, and no error
  // Called with the process and all of its standard output so far, whenever there is more.
  std::function<void(pid_t process, std::string_view out)> on_output = {};
};

class PhaseRun {
 public:
  using Write = std::function<void(std::string_view)>;  // empty: nothing is reported while it plays

  PhaseRun(const Environment& environment, PhaseResult result, Write write);

  // Runs `yoke ARGUMENTS`. Its exit status is an answer; Error(kTimeout) where it takes longer than the limit.
  Outcome run(const std::vector<std::string>& arguments, const RunOptions& options = {});
  // The same with --json: what it printed, an Error with the command's own message where it gave no answer.
  Document run_json(std::vector<std::string> arguments, const RunOptions& options = {});

  void expect(bool holds, std::string what);
  void figure(Figure figure);
  void print(std::string_view text);      // indented below the phase's heading
  void show(const report::Table& table);  // on the terminal and on the page
  void block(report::HtmlBlock block) { result_.blocks.push_back(std::move(block)); }  // on the page only

  PhaseResult end();           // with the time that it took
  void fail(std::string why);  // by an Error

 private:
  Outcome wait_for(Process& process, const std::string& line, const RunOptions& options);

  const Environment& environment_;
  PhaseResult result_;
  Write write_;
  Instant start_;
};

}  // namespace yoke::gameday
