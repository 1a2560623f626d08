// The phase about serving: eight clients stream from the model over all nodes, once undisturbed and once while a rank
// is killed. Every stream must come to its end with the same text.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/gameday/answers.h"
#include "yoke/gameday/phases.h"
#include "yoke/gameday/rank_kill.h"

namespace yoke::gameday {
namespace {

using namespace literals;

// Eight caches of this size fit beside the weights into a node of 176 MiB.
constexpr const char* kStreams = "8";
constexpr const char* kPromptTokens = "8";
constexpr const char* kStreamTokens = "40";
constexpr const char* kStreamContext = "64";
constexpr int kTries = 3;  // for a death that comes while all of them stream
constexpr const char* kLostWords = "restarting the lost ranks";

// `yoke serve` beside the commands of the phase, ended with this.
class ServeBeside {
 public:
  ServeBeside(const Environment& environment, PhaseRun& phase_run) {
    std::vector<std::string> words = {
        "serve", environment.model_played, "--port", "0", "--max-running", kStreams, "--context", kStreamContext};
    const std::vector<std::string> where = on_all_nodes(environment);
    words.insert(words.end(), where.begin(), where.end());
    if (environment.lab()) words.insert(words.end(), {"--cache-type", "bf16"});  // nodes of a lab are small
    std::string line = "$ yoke";
    for (const std::string& word : words) line += " " + word;
    phase_run.print(line + " &");
    words.insert(words.begin(), environment.options().program);
    process_.emplace(
        Command{.argv = words, .environment = {{"NO_COLOR", "1"}}, .folder = environment.folder(), .grace = 10_s});
    const std::string start = "http://";
    wait_for(" serves ");
    const std::size_t at = log_.find(start);
    url_ = log_.substr(at, log_.find_first_of(" \n", at) - at);
    // The engine says where it is once it is ready.
    wait_for(environment.cluster().nodes.size() == 1 ? "1 rank on " : " ranks on ");
  }

  const std::string& url() const { return url_; }
  pid_t pid() const { return process_->pid(); }
  const std::string& log() {
    if (!process_->at_end()) process_->poll_output(Deadline::after(50_ms));
    log_ += process_->read_bytes(OutputStream::kErr, std::string::npos, Deadline::after({}));
    return log_;
  }
  // Its exit status, after SIGTERM.
  int end() {
    kill(process_->pid(), SIGTERM);
    const auto outcome = process_->wait(Deadline::after(40_s));
    if (!outcome) throw Error(ErrorCode::kTimeout, "yoke serve does not end");
    return outcome->exit_status;
  }

 private:
  void wait_for(std::string_view text) {
    const Deadline deadline = Deadline::after(120_s);
    while (log().find(text) == std::string::npos) {
      throw_if_interrupted();
      if (process_->at_end() || deadline.expired()) {
        throw Error(ErrorCode::kUnavailable, fmt::format("yoke serve is not ready: {}", trim(log_)));
      }
      process_->poll_output(Deadline::after(200_ms));
    }
  }

  std::optional<Process> process_;
  std::string log_;
  std::string url_;
};

struct Streamed {
  bool in_mid_stream = false;  // it happened before the last of them had ended
  Document row;
  std::vector<std::string> texts;
};

bool still_runs(pid_t process) {
  const auto stat = DiskTree().read(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;  // a name may hold anything
  return name_end != std::string::npos && stat->find(" Z ", name_end) != name_end + 1;
}

// The clients, with something happening when each of them has had its first token.
Streamed stream_all(const Environment& environment, PhaseRun& phase_run, const ServeBeside& server,
                    const std::function<void()>& happen) {
  const std::vector<std::string> words = {
      "bench",        "serve",    "--server",    server.url(),      "--streams",
      kStreams,       "-n",       kStreamTokens, "--prompt-tokens", kPromptTokens,
      "--no-history", "--output", "-",           "--cluster",       environment.cluster_word()};
  Streamed streamed;
  bool has_happened = false;
  const Outcome outcome = phase_run.run(words, {.on_output = [&](pid_t process, std::string_view out) {
                                          if (has_happened || out.find("have begun") == std::string_view::npos) return;
                                          has_happened = true;
                                          if (happen) happen();
                                          streamed.in_mid_stream = still_runs(process);
                                        }});
  const std::size_t json = outcome.out.find("\n{");
  if (json == std::string::npos) {
    throw Error(ErrorCode::kUnavailable, fmt::format("yoke bench serve {}", outcome.describe()));
  }
  streamed.row = list_at(parse_json(outcome.out.substr(json), "yoke bench serve"), "rows").items.at(0);
  for (const Document& answer : list_at(streamed.row, "answers").items) {
    const Document* const error = answer.find("error");
    streamed.texts.push_back(error ? "error: " + error->text : text_at(answer, "text"));
  }
  return streamed;
}

}  // namespace

void run_serve_phase(Environment& environment, PhaseRun& phase_run) {
  prepare_model(environment, phase_run);
  ServeBeside server(environment, phase_run);
  const std::string head = environment.cluster().nodes.front().name;
  phase_run.print(fmt::format("the page: {}/ on {}", server.url(), head));
  const Streamed whole = stream_all(environment, phase_run, server, {});
  phase_run.expect(number_at(whole.row, "failed") == 0, fmt::format("{} clients stream at once", kStreams));
  phase_run.figure({.name = "streams", .value = number_at(whole.row, "tokens_per_second"), .unit = "tokens/s"});

  // A machine that is much faster than the death needs another try: what is to be seen is a death in mid-stream.
  Streamed disturbed;
  for (int attempt = 0; attempt < kTries && !disturbed.in_mid_stream; ++attempt) {
    RankKill death(environment, phase_run);
    disturbed = stream_all(environment, phase_run, server, [&] { death.happen(server.pid()); });
  }
  phase_run.print(server.log());
  phase_run.expect(disturbed.in_mid_stream, "a rank is killed while all of them stream");
  phase_run.expect(server.log().find(kLostWords) != std::string::npos, fmt::format("it was noticed: '{}'", kLostWords));
  phase_run.expect(number_at(disturbed.row, "failed") == 0, "no stream is lost");
  phase_run.expect(disturbed.texts == whole.texts, "every stream has the same text as without it");
  phase_run.figure(
      {.name = "longest pause", .value = number_at(disturbed.row, "longest_pause_ms.max") / 1e3, .unit = "s"});
  phase_run.block(report::HtmlFacts{{{"page", fmt::format("{}/ on {}", server.url(), head)},
                                     {"first stream", whole.texts.empty() ? "" : whole.texts.front()},
                                     {"reported meanwhile", server.log()}}});
  phase_run.expect(server.end() == 0, "the server stops when it is asked to");
}

}  // namespace yoke::gameday
