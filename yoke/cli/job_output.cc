#include "yoke/cli/job_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace yoke {
namespace {

constexpr std::size_t kCollectMost = 64 << 10;

void write_errors(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nowhere left to say it
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

void JobOutput::show(JobSpec& spec) {
  if (style_ == OutputStyle::kFirstRank) spec.output_form = OutputForm::kFirstRankRaw;
  spec.on_output = [this](const RankOutput& output) { take(output); };
  spec.on_event = [this](const JobEvent& event) { take(event); };
  spec.on_idle = [this] { flush(); };
}

void JobOutput::take(const RankOutput& output) {
  const bool out = output.stream == OutputStream::kOut;
  const bool raw = style_ == OutputStyle::kFirstRank && out && output.rank == 0;
  std::string& into = raw || (out && style_ != OutputStyle::kFirstRank) ? out_ : err_;
  if (!raw && style_ != OutputStyle::kPlain) into += fmt::format("{}/{} | ", output.node, output.rank);
  into += output.text;
  // Prefixed, a line without its end would run into the next rank's.
  if (!raw && (output.line_ended || style_ != OutputStyle::kPlain)) into += '\n';
  if (into.size() >= kCollectMost) flush();
}

void JobOutput::take(const JobEvent& event) {
  if (event.kind != JobEvent::Kind::kNotice && event.kind != JobEvent::Kind::kRestart) return;
  flush();
  write_errors(fmt::format("yoke: {}\n", event.text));
}

void JobOutput::flush() {
  if (!out_.empty()) session_.print(std::exchange(out_, {}));
  if (!err_.empty()) write_errors(std::exchange(err_, {}));
}

int JobOutput::report(const JobOutcome& outcome) {
  if (!outcome.cause) return outcome.exit_status;
  const Error& error = outcome.cause->error;
  write_errors(fmt::format("yoke: {}\n", error.message()));
  if (!error.hint().empty()) write_errors(fmt::format("  hint: {}\n", error.hint()));
  return outcome.exit_status;
}

}  // namespace yoke
