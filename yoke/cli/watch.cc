// yoke watch: all nodes over time.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/lab_head.h"
#include "yoke/cli/watch_input.h"
#include "yoke/watch/exposition.h"
#include "yoke/watch/page_server.h"
#include "yoke/watch/record.h"
#include "yoke/watch/terminal_screen.h"
#include "yoke/watch/watch_report.h"
#include "yoke/watch/watch_text.h"

namespace yoke::cli {
namespace {

using namespace literals;

struct WatchArguments {
  WatchInput input;
  bool once = false, page = false, only_own = false, stream = false;
  std::string listen = "127.0.0.1:9545";
  std::optional<std::string> record, textfile;
  Bytes record_limit{256 << 20};
  Seconds duration{0};
};

void refuse_watch_contradictions(const WatchArguments& a) {
  const auto refuse = [](std::string what, std::string hint) {
    throw Error(ErrorCode::kUsage, std::move(what), std::move(hint));
  };
  if (a.input.replay && a.record) refuse("--replay and --record do not go together", "the record is there already");
  if (a.input.replay && a.stream) refuse("--replay and --stream do not go together", "give one of them");
  if (a.record_limit.value < watch::kMinRecordBytes) refuse("--record-limit is too small", "1MiB is the least");
}

// What is done with each sample and finding.
class WatchOutputs {
 public:
  WatchOutputs(Session& session, const WatchArguments& arguments, const watch::WatchPlan& plan)
      : session_(session), arguments_(arguments) {
    if (arguments.record) record_.emplace(*arguments.record, plan, arguments.record_limit);
    if (!arguments.page) return;
    page_.emplace(value_or_throw(parse_endpoint(arguments.listen)),
                  arguments.only_own ? watch::Exposed::kOwn : watch::Exposed::kAll);
    url_ = fmt::format("http://{}/", to_string(page_->local()));
  }

  const std::string& url() const { return url_; }
  void be_silent() { is_silent_ = true; }  // a screen shows it

  void take(const watch::Board& board, const watch::Observation& observation,
            const std::vector<watch::FindingChange>& changes) {
    if (record_) record_->add(observation);
    if (session_.json && observation.sample && !arguments_.once) {
      print_line(watch::sample_json(board, observation.node));
    }
    take_changes(board, changes);
  }

  void take_changes(const watch::Board& board, const std::vector<watch::FindingChange>& changes) {
    for (const watch::FindingChange& change : changes) {
      if (session_.json && !arguments_.once) print_line(watch::change_json(change));
      const bool is_reported = !session_.json && !session_.quiet && !arguments_.once && !is_silent_;
      if (is_reported) {
        log(LogLevel::kInfo, "{} {}: {} ({})", change.kind == watch::FindingChange::Kind::kBegins ? "begins" : "ends",
            change.finding.finding.rule, change.finding.finding.what, change.finding.finding.evidence);
      }
    }
    publish(board);
  }

 private:
  void print_line(const Document& line) { session_.print_as_is(print_json(line, JsonLayout::kOneLine) + "\n"); }

  // Once for all nodes, whose samples come a moment apart.
  void publish(const watch::Board& board) {
    if ((!arguments_.textfile && !page_) || board.now() - published_ < arguments_.input.interval.value * 0.45) return;
    published_ = board.now();
    if (page_) page_->publish(board);
    if (!arguments_.textfile) return;
    write_file_atomically(*arguments_.textfile, watch::exposition(board, watch::Exposed::kTextfile));
  }

  Session& session_;
  const WatchArguments& arguments_;
  std::optional<watch::RecordWriter> record_;
  std::optional<watch::PageServer> page_;
  std::string url_;
  bool is_silent_ = false;
  double published_ = 0;
};

// Two samples of each node make rates; a node that does not answer is waited for no longer than it takes to tell.
bool is_seen_enough(const watch::Board& board) {
  for (const watch::BoardNode& node : board.nodes()) {
    if (!(node.sample && node.before) && !node.silent) return false;
  }
  return true;
}

int finish(const watch::Board& board) { return board.findings().open().empty() ? kExitOk : kExitFindings; }

int watch_once(Session& session, watch::ObservationSource& source, watch::Board& board, WatchOutputs& outputs,
               const WatchArguments& a) {
  const Deadline deadline = Deadline::after(a.input.reach_limit() + 3.0 * a.input.interval);
  // What must last to be a finding is looked at for a moment longer.
  Deadline settled = Deadline::never();
  bool is_settling = false;
  while (!source.at_end() && !deadline.expired() && !settled.expired()) {
    throw_if_interrupted();
    if (const auto observation = source.next(Deadline::after(0.1_s))) {
      outputs.take(board, *observation, board.take(*observation));
    }
    if (!a.input.replay) outputs.take_changes(board, board.tick(source.now()));
    if (!is_settling && is_seen_enough(board) && !a.input.replay) {
      is_settling = true;
      settled = Deadline::after(1_s);
    }
  }
  if (session.json) {
    session.print_json(watch::board_json(board));
  } else {
    session.print(watch::once_text(board));
  }
  return finish(board);
}

int watch_on(watch::ObservationSource& source, watch::Board& board, WatchOutputs& outputs, const WatchArguments& a) {
  const Deadline deadline = a.duration.value > 0 ? Deadline::after(a.duration) : Deadline::never();
  while (!source.at_end() && !deadline.expired()) {
    if (interrupt_signal() != 0) break;  // how a watch is ended: not an error
    if (const auto observation = source.next(Deadline::after(0.2_s))) {
      outputs.take(board, *observation, board.take(*observation));
    } else {
      outputs.take_changes(board, board.tick(source.now()));
    }
  }
  return finish(board);
}

constexpr int kMaxTaken = 1000;  // observations between two drawings

// The screen is drawn of a copy while it is paused.
int watch_on_screen(watch::ObservationSource& source, watch::Board& board, WatchOutputs& outputs,
                    const WatchArguments& a) {
  const Deadline deadline = a.duration.value > 0 ? Deadline::after(a.duration) : Deadline::never();
  watch::TerminalScreen screen;
  watch::ScreenState state;
  outputs.be_silent();
  std::optional<watch::Board> held;
  Instant drawn{};
  bool is_changed = true;
  while (!deadline.expired() && interrupt_signal() == 0) {
    for (int taken = 0; taken < kMaxTaken; ++taken) {
      const auto observation = source.next(Deadline::after(0.02_s));
      if (!observation) break;
      outputs.take(board, *observation, board.take(*observation));
    }
    outputs.take_changes(board, board.tick(source.now()));
    if (state.paused && !held) held = board;
    if (!state.paused) held.reset();
    if (is_changed || to_seconds(real_clock().now() - drawn).value >= 0.25) {
      drawn = real_clock().now();
      screen.show(watch::render_screen(held ? *held : board, state, screen.size()));
    }
    const auto key = screen.key(0.08_s);
    is_changed = key.has_value();
    if (key && watch::take_key(state, *key, board.nodes().size()) == watch::KeyResult::kQuit) break;
  }
  return finish(board);
}

// The observations themselves, as the lines of a record: for the watch on the machine that has this lab.
int stream_observations(Session& session, const WatchArguments& a) {
  if (const auto status = run_on_lab_head(session, stream_arguments(session, a.input))) return *status;
  const OpenedWatch opened = open_watch(session, a.input);
  watch::RecordEncoder encoder(opened.plan);
  session.print_as_is(encoder.header());
  while (interrupt_signal() == 0) {
    if (const auto observation = opened.source->next(Deadline::after(1_s))) {
      session.print_as_is(encoder.encode(*observation));
    }
  }
  return kExitOk;
}

int run_watch(Session& session, const WatchArguments& a) {
  refuse_watch_contradictions(a);
  if (a.stream) return stream_observations(session, a);
  const OpenedWatch opened = open_watch(session, a.input);
  watch::Board board(opened.plan);
  WatchOutputs outputs(session, a, opened.plan);
  const bool has_output = session.json || a.record || a.textfile || a.page;
  if (!outputs.url().empty() && !session.quiet) {
    log(LogLevel::kInfo, "the page is {} and the metrics are {}metrics", outputs.url(), outputs.url());
  }
  const bool is_terminal = isatty(STDIN_FILENO) != 0 && takes_escapes(STDOUT_FILENO);
  if (is_terminal && !a.once && !session.json) return watch_on_screen(*opened.source, board, outputs, a);
  if (a.once || !has_output) return watch_once(session, *opened.source, board, outputs, a);
  return watch_on(*opened.source, board, outputs, a);
}

struct ReportArguments {
  std::string file;
  std::string output = "watch.html";
};

int run_report(Session& session, const ReportArguments& a) {
  write_file_atomically(a.output, report::render_html(watch::report_page(watch::RecordReader(a.file))));
  if (!session.quiet) session.print(fmt::format("Wrote {}.\n", a.output));
  return kExitOk;
}

CommandRow watch_report_command() {
  return {.name = "report",
          .summary = "a record as a page: plots, findings, idle time",
          .description = "Reads a record of 'yoke watch --record' and writes one HTML file that needs nothing else.",
          .examples = {{"yoke watch report night.watch -o night.html", "what happened last night"}},
          .prepare = [](OptionTable& table) -> Action {
            auto a = std::make_shared<ReportArguments>();
            table.positional("FILE", "the record", a->file, Presence::kRequired);
            table.value("-o,--output", "FILE", "the page to write (watch.html)", a->output);
            return [a](Session& session) { return run_report(session, *a); };
          }};
}

}  // namespace

CommandRow watch_command() {
  return {
      .name = "watch",
      .summary = "all nodes over time: GPUs, memory, rails, engines, findings",
      .description =
          "Samples every node of the cluster (or this machine, where there is no cluster file) once a second and shows "
          "them together: processors, memory and its pressure, each rail's rates and errors, GPUs, engines and jobs, "
          "and what is wrong in the words of 'yoke check', from its beginning to its end. Nothing is changed. What a "
          "machine does not give is shown as '-'. A node that stops answering is shown within 3 s.\n\n"
          "Exit status: 0 no finding is open at the end, 1 findings. docs/watch.md describes everything.",
      .examples = {{"yoke watch", "the live screen; ? lists its keys"},
                   {"yoke watch --once", "one table of all nodes"},
                   {"yoke watch --page", "a page with live plots, and /metrics for Prometheus"},
                   {"yoke watch --json --interval 0.5", "one line for each sample and finding"},
                   {"yoke watch --record night.watch", "keep it; --replay night.watch shows it again"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<WatchArguments>();
        declare_watch_input(table, a->input);
        table.flag("--once", "print one table and end", a->once);
        table.flag("--page", "serve a page with live plots, and /metrics", a->page);
        table.value("--listen", "ADDRESS:PORT", "where (127.0.0.1:9545: this machine only)", a->listen);
        table.flag("--only-own", "/metrics without the names of node_exporter and dcgm-exporter", a->only_own);
        table.value("--record", "FILE", "write everything to this file too", a->record);
        table.value("--record-limit", "SIZE", "its largest size; the oldest is then overwritten (256MiB)",
                    a->record_limit);
        table.value("--textfile", "FILE", "write metrics for node_exporter's textfile collector", a->textfile);
        table.value("--for", "TIME", "end after this time", a->duration);
        table.flag("--stream", "print what is observed in the form of a record, for another watch", a->stream);
        return [a](Session& session) { return run_watch(session, *a); };
      },
      .subcommands = {watch_report_command()}};
}

}  // namespace yoke::cli
