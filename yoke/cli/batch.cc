// yoke batch: a file of requests to a file of answers, on yoke's own engine or on any server of OpenAI's kind.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/batch/run_batch.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/commands.h"
#include "yoke/http/curl.h"
#include "yoke/http/plain_client.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

struct BatchArguments {
  std::string model;
  std::optional<std::string> input;
  std::string output;
  std::optional<std::string> server;
  int parallel = 32;
  Seconds patience{600};
  std::optional<int> ranks, context;
};

constexpr Seconds kAnswerLimit{3600};
constexpr Seconds kLookForLines{0.002};  // of the own server, after each answer: with no time at all nothing is read

// Ends the server when this program ends, however that happens: the shell notices the end of its standard input.
constexpr const char* kTiedToUs =
    "exec 3<&0; \"$@\" </dev/null & pid=$!; { cat <&3; kill \"$pid\"; } >/dev/null 2>&1 & wait \"$pid\"";

class OwnServer {
 public:
  OwnServer(Session& session, const BatchArguments& a) : session_(session), process_(command(session, a)) {
    const Deadline deadline = Deadline::after(Seconds{60});
    while (endpoint_.empty()) {
      take_lines(Deadline::after(Seconds{0.2}));
      if (deadline.expired()) throw Error(ErrorCode::kTimeout, "yoke serve did not start within 60 s");
    }
  }
  const std::string& endpoint() const { return endpoint_; }  // "127.0.0.1:40123"

  // Its events. Throws what it says at its end.
  void take_lines(Deadline deadline) {
    while (const auto line = process_.read_line(deadline)) {
      // With --json its error comes twice: as text for people, and as JSON over several lines.
      if (line->stream == OutputStream::kErr && line->text.starts_with("yoke: ")) problem_ = line->text.substr(6);
      const auto event = try_to([&] { return parse_json(line->text, "an event"); });
      const Document* const kind = event ? event->find("event") : nullptr;
      const Document* const message = event ? event->find("message") : nullptr;
      if (!kind || !message) continue;
      if (kind->text == "listening" && message->text.starts_with("http://")) {
        endpoint_ = message->text.substr(7, message->text.find(' ') - 7);
      } else if (kind->text == "notice") {
        session_.warn({message->text});
      }
    }
    if (process_.at_end())
      throw Error(ErrorCode::kUnavailable,
                  "yoke serve ended: " + printable(problem_.empty() ? "it says no reason" : problem_, 300));
  }

 private:
  static Command command(const Session& session, const BatchArguments& a) {
    std::vector<std::string> argv = {"sh",
                                     "-c",
                                     kTiedToUs,
                                     "sh",
                                     fs::read_symlink("/proc/self/exe").native(),
                                     "serve",
                                     a.model,
                                     "--host",
                                     "127.0.0.1",
                                     "--port",
                                     "0",
                                     "--json",
                                     "--max-running",
                                     std::to_string(std::min(a.parallel, 1024)),
                                     "--request-timeout",
                                     exact(kAnswerLimit)};
    if (a.ranks) argv.insert(argv.end(), {"--ranks", std::to_string(*a.ranks)});
    if (a.context) argv.insert(argv.end(), {"--context", std::to_string(*a.context)});
    if (const auto cluster = find_cluster_file(session)) {
      argv.insert(argv.end(), {"--cluster", fs::path(*cluster).native()});
    }
    return {.argv = std::move(argv), .input_mode = InputMode::kPipe};
  }

  Session& session_;
  Process process_;
  std::string endpoint_, problem_;
};

std::vector<std::string> key_headers() {
  const char* key = std::getenv("OPENAI_API_KEY");
  if (!key || !*key) return {};
  return {fmt::format("Authorization: Bearer {}", key)};
}

// "http://host:8000" or "https://host/base": what follows the host comes before "/v1/…".
batch::AskServer server_at(const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) {
    throw Error(ErrorCode::kUsage, fmt::format("--server: '{}' is no address of a server", printable(text, 100)),
                "--server http://127.0.0.1:8000");
  }
  std::string base = url->path;
  while (base.ends_with('/')) base.pop_back();
  if (base.ends_with("/v1")) base.resize(base.size() - 3);
  if (url->scheme == "http" && key_headers().empty()) {
    const std::string host = url->host.find(':') == std::string::npos ? url->host + ":80" : url->host;
    const Endpoint endpoint = value_or_throw(parse_endpoint(host));
    return [endpoint, base](const std::string& path, const std::string& body) {
      return http::ask(endpoint, {"POST", base + path, body}, Deadline::after(kAnswerLimit));
    };
  }
  const std::string root = fmt::format("{}://{}{}", url->scheme, url->host, base);
  return [root](const std::string& path, const std::string& body) {
    std::vector<std::string> headers = key_headers();
    headers.emplace_back("Content-Type: application/json");
    const auto got =
        http::fetch({.url = root + path, .headers = std::move(headers), .stall_limit = kAnswerLimit, .body = body});
    if (!got.is_complete()) throw Error(ErrorCode::kUnavailable, "the connection broke: " + got.problem);
    return got.answer;
  };
}

std::string rate_text(std::size_t done, std::size_t total, Seconds elapsed) {
  if (done == 0 || elapsed.value <= 0) return "";
  const double rate = static_cast<double>(done) / elapsed.value;
  return fmt::format("{:.3g} lines/s, {} left", rate, to_string(Seconds{static_cast<double>(total - done) / rate}));
}

int run_batch_command(Session& session, BatchArguments a) {
  if (a.server && !a.input) a.input = std::exchange(a.model, "");
  if (!a.input) {
    throw Error(ErrorCode::kUsage, "there is no file of requests", "yoke batch MODEL in.jsonl -o out.jsonl");
  }
  if (a.server && !a.model.empty()) {
    throw Error(ErrorCode::kUsage, "MODEL and --server exclude each other", "the requests name the server's model");
  }
  if (a.output.empty()) throw Error(ErrorCode::kUsage, "there is no file for the answers", "-o out.jsonl");
  const batch::BatchInput input = batch::read_batch_input(*a.input);
  batch::BatchOutput output(a.output, input);
  std::optional<OwnServer> own;
  if (!a.server && output.size() < input.lines.size()) own.emplace(session, a);
  const batch::AskServer ask = a.server ? server_at(*a.server) : own ? server_at("http://" + own->endpoint()) : nullptr;
  const std::size_t before = output.size();
  const auto start = real_clock().now();
  batch::BatchReport report{.requests = input.lines.size(), .before = before};
  {
    Progress progress("answering", static_cast<std::int64_t>(input.lines.size()));
    const auto on_progress = [&](std::size_t done, std::size_t) {
      if (own) own->take_lines(Deadline::after(kLookForLines));
      const Seconds elapsed{std::chrono::duration<double>(real_clock().now() - start).count()};
      progress.update(static_cast<std::int64_t>(done), rate_text(done - before, input.lines.size() - before, elapsed));
    };
    if (before < input.lines.size()) {
      report = batch::run_batch(
          input, output, ask,
          {.parallel = a.parallel, .drop_model = !a.server, .patience = a.patience, .on_progress = on_progress});
    }
  }
  output.finish();
  const double asked = static_cast<double>(report.requests - report.before);
  const double rate = report.time.value > 0 ? asked / report.time.value : 0;
  if (session.json) {
    session.print_json(Document::map({{"requests", Document::number(static_cast<std::int64_t>(report.requests))},
                                      {"before", Document::number(static_cast<std::int64_t>(report.before))},
                                      {"failed", Document::number(static_cast<std::int64_t>(report.failed))},
                                      {"seconds", Document::number(report.time.value)},
                                      {"output", Document::string(a.output)}}));
  } else {
    session.print(fmt::format("{}: {} answers", a.output, report.requests));
    if (report.before > 0) session.print(fmt::format(", {} of them from an earlier run", report.before));
    if (rate > 0) session.print(fmt::format("; {:.3g} lines/s", rate));
    session.print(report.failed > 0 ? fmt::format("\n{} requests were refused: their lines say why.\n", report.failed)
                                    : "\n");
  }
  return report.failed > 0 ? kExitFindings : kExitOk;
}

}  // namespace

CommandRow batch_command() {
  return {
      .name = "batch",
      .summary = "answer a file of requests, resumable, on yoke's engine or any OpenAI server",
      .description =
          "Reads a file of requests in OpenAI's batch format (JSON lines with custom_id, method, url and body) and "
          "writes a file of answers in the same order. Several requests are computed together. Answers are kept in "
          "OUT.partial as they come: after a kill, a power cut or Ctrl-C the same command continues, and no line is "
          "lost or answered twice. With MODEL yoke's own engine answers, on this machine or over the cluster; with "
          "--server any server of OpenAI's kind (OPENAI_API_KEY is sent where it is set). Exit status 1 where the "
          "server refused a request.",
      .examples = {{"yoke batch nano in.jsonl -o out.jsonl", "on yoke's own engine"},
                   {"yoke batch in.jsonl -o out.jsonl --server http://127.0.0.1:8000", "on a server that runs"}},
      .prepare = [](OptionTable& table) -> Action {
        auto a = std::make_shared<BatchArguments>();
        table.positional("MODEL", "as 'yoke serve' takes it; left out with --server", a->model, Presence::kRequired);
        table.positional("IN", "the file of requests", a->input, Presence::kOptional);
        table.value("-o,--output", "OUT", "the file of answers", a->output);
        table.value("--server", "URL", "ask this server instead", a->server);
        table.value("--parallel", "N", "requests at once (32)", a->parallel, {.min = 1, .max = 4096});
        table.value("--patience", "TIME", "with a server that is away or busy (600s)", a->patience);
        table.value("--ranks", "N", "over how many ranks the model is split", a->ranks, {.min = 1, .max = 256});
        table.value("--context", "N", "most tokens of prompt and answer", a->context, {.min = 1});
        return [a](Session& session) { return run_batch_command(session, *a); };
      },
      .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
