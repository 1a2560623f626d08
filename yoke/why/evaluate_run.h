// The account of a run against what was expected of it. Pure: the same question gives the same answer.
//
//   const Answer answer = evaluate_run({.account = account, .planned = planned, .healthy = earlier});
//
// Blame needs evidence that noise cannot make. Facts come first: a rail without a connection, a route that leaves by
// another interface, time that the kernel counted as waiting for a processor. Then comparisons within the run: one rail
// with another, one rank with another. Only then times against what was expected, and only if the processors were free
// and the expectation was measured on these machines.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/spec/step_account.h"
#include "yoke/why/answer.h"

namespace yoke::why {

// The plan's terms of one step, in seconds.
struct PlannedStep {
  double weights = 0;  // arithmetic included
  double cache = 0;
  double fixed = 0;
  double exchange = 0;
};

struct PlannedRun {
  PlannedStep decode;
  double prefill_computing = 0;  // of one token
  double prefill_exchange = 0;   // of one step of the mean size
  double spread = 2;             // by this factor a measurement may be longer
  bool is_calibrated = false;    // by what was measured on these machines
  double read_rate = 0;          // bytes a second of one node; 0: not known
};

// What the cluster file says of the rails between the nodes.
struct RailsExpected {
  std::vector<std::string> rails;  // "A", "B"; empty: none, or one machine
  double rate = 0;                 // bits a second of each; 0: not known
  double mtu = 0;                  // 0: not known
};

struct RunQuestion {
  std::string subject;
  spec::StepAccount account;
  std::optional<PlannedRun> planned = {};
  std::vector<spec::StepAccount> healthy = {};  // of earlier runs of the same kind, in which nothing was off
  RailsExpected rails = {};
  std::string options = {};  // " --lab NAME" or " --cluster FILE", for commands
};

Answer evaluate_run(const RunQuestion& question);

// As it is kept with a run; subject and healthy runs are added when it is asked.
Document to_json(const RunQuestion& question);
void from_json(const Document& document, RunQuestion& question);

// ---- parts, in the order of the answer; each adds what it finds.
void evaluate_rails(const RunQuestion& question, Answer& answer);
void evaluate_ranks(const RunQuestion& question, Answer& answer);
void evaluate_terms(const RunQuestion& question, Answer& answer);

// The share of the time in which a rank was ready to compute and had no processor.
double processor_wait_share(const spec::RankAccount& rank);
// Too busy a machine for times to prove anything.
bool is_disturbed(const spec::StepAccount& account);

}  // namespace yoke::why
