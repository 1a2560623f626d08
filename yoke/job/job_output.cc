#include "yoke/job/job_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "yoke/base/text.h"

namespace yoke::job {

namespace {

constexpr std::size_t kMaxCollect = 64 << 10;

void write_errors(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nowhere left to say it
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

Document outcome_json(const std::string& job, const JobOutcome& outcome) {
  Document map = Document::map({{"job", Document::string(job)},
                                {"exit_status", Document::number(std::int64_t{outcome.exit_status})},
                                {"restarts", Document::number(std::int64_t{outcome.restarts})}});
  if (!outcome.cause) return map;
  const JobCause& cause = *outcome.cause;
  Document what = Document::map({{"kind", Document::string(std::string(to_string(cause.kind)))}});
  if (!cause.node.empty()) what.add("node", Document::string(cause.node));
  if (cause.rank) what.add("rank", Document::number(std::int64_t{*cause.rank}));
  if (!cause.rail.empty()) what.add("rail", Document::string(cause.rail));
  map.add("cause", std::move(what));
  map.add("error", terminal::error_json(cause.error, outcome.exit_status));
  return map;
}

}  // namespace

void JobOutput::show(JobSpec& spec) {
  spec.on_output = [this](const RankOutput& output) { take(output); };
  spec.on_event = [this](const JobEvent& event) { take(event); };
  spec.on_idle = [this] { flush(); };
}

void JobOutput::take(const RankOutput& output) {
  const bool out = output.stream == OutputStream::kOut;
  const bool lines_out = style_ == OutputStyle::kPrefixed || style_ == OutputStyle::kPlain;
  std::string& into = out && lines_out ? out_ : err_;
  if (style_ != OutputStyle::kPlain) into += fmt::format("{}/{} | ", output.node, output.rank);
  into += output.text;
  // Prefixed, a line without its end would run into the next rank's.
  if (output.line_ended || style_ != OutputStyle::kPlain) into += '\n';
  if (into.size() >= kMaxCollect) flush();
}

void JobOutput::take(const JobEvent& event) {
  if (event.kind != JobEvent::Kind::kNotice && event.kind != JobEvent::Kind::kRestart) return;
  flush();
  terminal::Session::note(event.text);
}

void JobOutput::flush() {
  if (!out_.empty()) session_.print_as_is(std::exchange(out_, {}));
  if (!err_.empty()) write_errors(std::exchange(err_, {}));
}

int JobOutput::report(const std::string& job, const JobOutcome& outcome) const {
  if (outcome.cause) {
    const Error& error = outcome.cause->error;
    terminal::Session::note(error.message());
    if (!error.hint().empty()) write_errors(fmt::format("  hint: {}\n", terminal_safe(error.hint())));
  }
  if (session_.json) session_.print_json(outcome_json(job, outcome));
  return outcome.exit_status;
}

}  // namespace yoke::job
