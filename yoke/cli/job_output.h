// Shows what the ranks of a job write, for every command that is built on a job.
//
//   JobOutput output(session, OutputStyle::kPrefixed);   // "spark-2/1 | text"
//   output.show(spec);                                   // sets the hooks
//   return output.report(Job(spec).wait());
//
// Lives as long as the Job; used by the thread that waits for it.
#pragma once
#include <string>

#include "yoke/cli/command.h"
#include "yoke/job/job.h"

namespace yoke {

enum class OutputStyle {
  kPrefixed,   // every line with its node and rank, on the stream that it came by
  kPlain,      // every line as it is
  kFirstRank,  // rank 0's standard output as it is, byte for byte; all else prefixed on standard error
};

class JobOutput {
 public:
  JobOutput(const Session& session, OutputStyle style) : session_(session), style_(style) {}
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;

  void show(JobSpec& spec);
  // Tells on standard error what ended the job; the exit status that it gives the command.
  static int report(const JobOutcome& outcome);

 private:
  void take(const RankOutput& output);
  void take(const JobEvent& event);
  void flush();

  const Session& session_;
  OutputStyle style_;
  // Written in large pieces: a system call for each line would make a talkative rank wait for us.
  std::string out_, err_;
};

}  // namespace yoke
