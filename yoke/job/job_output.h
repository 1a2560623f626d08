// Shows what the ranks of a job write, for every command that is built on a job.
//
//   JobOutput output(session, OutputStyle::kPrefixed);   // "spark-2/1 | text"
//   output.show(spec);                                   // sets the hooks
//   Job job(spec);
//   return output.report(job.name(), job.wait());
//
// Lives as long as the Job; used by the thread that waits for it.
#pragma once
#include <string>

#include "yoke/job/job.h"
#include "yoke/terminal/session.h"

namespace yoke::job {

enum class OutputStyle {
  kPrefixed,  // every line with its node and rank, on the stream that it came by
  kPlain,     // every line as it is
  kErrors,    // every line prefixed on standard error: standard output is for JSON
};

class JobOutput {
 public:
  JobOutput(const terminal::Session& session, OutputStyle style) : session_(session), style_(style) {}
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;

  void show(JobSpec& spec);
  // Tells on standard error what ended the job, with --json also on standard output; the exit status that it gives the
  // command.
  int report(const std::string& job, const JobOutcome& outcome) const;

 private:
  void take(const RankOutput& output);
  void take(const JobEvent& event);
  void flush();

  const terminal::Session& session_;
  OutputStyle style_;
  // Written in large pieces: a system call for each line would make a talkative rank wait for us.
  std::string out_, err_;
};

}  // namespace yoke::job
