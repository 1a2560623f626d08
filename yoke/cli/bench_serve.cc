// yoke bench serve: clients that stream from a running server, of yoke or of another engine with OpenAI's API.
#include <fmt/format.h>

#include <cstdlib>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/bench/history.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/cli/commands.h"
#include "yoke/serve/stream_load.h"
#include "yoke/serve/upstream_text.h"

namespace yoke::cli {
namespace {

struct StreamArguments {
  std::string server = "http://127.0.0.1:8000";
  std::string streams = "8";
  int prompt = 16, tokens = 64, seed = 1;
  std::optional<double> temperature;
  std::optional<std::string> output;
  bool no_history = false;
};

struct StreamRow {
  int streams = 0;
  Seconds time{};
  std::vector<serve::StreamRecord> records;

  std::int64_t tokens() const {
    std::int64_t all = 0;
    for (const serve::StreamRecord& one : records) all += one.tokens;
    return all;
  }
  double rate() const { return time.value > 0 ? static_cast<double>(tokens()) / time.value : 0; }
  int failed() const {
    return static_cast<int>(
        std::count_if(records.begin(), records.end(), [](const auto& one) { return !one.is_complete; }));
  }
  template <class Value>
  bench::SampleStats stats(const Value& value) const {
    std::vector<double> samples;
    for (const serve::StreamRecord& one : records) samples.push_back((one.*value)().value);
    return bench::summarize(samples);
  }
  bench::SampleStats first() const { return stats(&serve::StreamRecord::first); }
  bench::SampleStats per_token() const { return stats(&serve::StreamRecord::per_token); }
  bench::SampleStats pause() const { return stats(&serve::StreamRecord::longest_pause); }
};

std::vector<int> stream_counts(const std::string& words) {
  std::vector<int> counts;
  for (const std::string& word : split(words, ',')) {
    const int count = std::atoi(word.c_str());
    if (count < 1 || count > 1024 || word.find_first_not_of("0123456789") != std::string::npos) {
      throw Error(ErrorCode::kUsage, fmt::format("--streams cannot have '{}'", printable(word, 40)),
                  "numbers from 1 to 1024, such as 8 or 1,4,8,16");
    }
    counts.push_back(count);
  }
  return counts;
}

// Three digits, and never as a power of ten.
std::string as_ms(double seconds) {
  const double ms = seconds * 1e3;
  return ms >= 100 ? fmt::format("{:.0f}", ms) : fmt::format("{:.3g}", ms);
}

Document stream_row_json(const StreamRow& row) {
  const auto times = [](const bench::SampleStats& stats) {
    return Document::map({{"p50", Document::number(stats.p50 * 1e3)},
                          {"p99", Document::number(stats.p99 * 1e3)},
                          {"max", Document::number(stats.max * 1e3)}});
  };
  Document answers = Document::list();
  for (const serve::StreamRecord& one : row.records) {
    Document answer = Document::map({{"text", Document::string(one.text)}, {"tokens", Document::number(one.tokens)}});
    if (!one.is_complete) answer.add("error", Document::string(one.error));
    answers.items.push_back(std::move(answer));
  }
  return Document::map({{"streams", Document::number(std::int64_t{row.streams})},
                        {"failed", Document::number(std::int64_t{row.failed()})},
                        {"tokens", Document::number(row.tokens())},
                        {"seconds", Document::number(row.time.value)},
                        {"tokens_per_second", Document::number(row.rate())},
                        {"first_token_ms", times(row.first())},
                        {"token_ms", times(row.per_token())},
                        {"longest_pause_ms", times(row.pause())},
                        {"answers", std::move(answers)}});
}

bench::RunRecord stream_record_of(const StreamArguments& a, const std::vector<StreamRow>& rows) {
  bench::RunRecord record =
      bench::new_record("serve", Document::map({{"server", Document::string(a.server)},
                                                {"prompt_tokens", Document::number(std::int64_t{a.prompt})},
                                                {"answer_tokens", Document::number(std::int64_t{a.tokens})}}));
  for (const StreamRow& row : rows) {
    record.rows.push_back({.name = fmt::format("{} streams", row.streams),
                           .size = 0,
                           .value = row.rate(),
                           .low = row.rate(),
                           .high = row.rate(),
                           .unit = "tok/s"});
  }
  record.summary = fmt::format("{}: {:.3g} tok/s with {} streams", a.server, rows.back().rate(), rows.back().streams);
  return record;
}

// What came of the streams that were cut off, of which one is named.
void throw_if_failed(const std::vector<StreamRow>& rows) {
  for (const StreamRow& row : rows) {
    for (const serve::StreamRecord& one : row.records) {
      if (one.is_complete) continue;
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} of {} streams did not end: {}", row.failed(), row.streams, one.error));
    }
  }
}

// `place`: of the row. Each asks other prompts: a server may remember those of the row before.
StreamRow measure_streams(const Session& session, const StreamArguments& a, const serve::UpstreamUrl& url, int count,
                          std::size_t place) {
  const char* const key = std::getenv("OPENAI_API_KEY");
  const serve::StreamLoad load{.server = {url.host, url.port},
                               .key = key ? std::optional<std::string>(key) : std::nullopt,
                               .streams = count,
                               .prompt = a.prompt,
                               .tokens = a.tokens,
                               .temperature = a.temperature.value_or(0),
                               .seed = static_cast<std::uint64_t>(a.seed) + 1'000'003 * place,
                               .on_all_begun = [&] {
                                 if (!session.json) session.print(fmt::format("# {} streams have begun\n", count));
                               }};
  const Instant start = real_clock().now();
  StreamRow row{.streams = count, .records = serve::run_streams(load)};
  row.time = to_seconds(real_clock().now() - start);
  return row;
}

int run_bench_serve(Session& session, const StreamArguments& a) {
  const serve::UpstreamUrl url = serve::parse_upstream(a.server);
  const std::vector<int> counts = stream_counts(a.streams);
  std::vector<StreamRow> rows;
  Document list = Document::list();
  if (!session.json) {
    session.print(fmt::format("{:>8} {:>7} {:>9} {:>16} {:>16} {:>16} {:>7}\n", "streams", "failed", "tokens/s",
                              "first token (ms)", "per token (ms)", "pause, max (ms)", "tokens"));
  }
  for (const int count : counts) {
    const StreamRow& row = rows.emplace_back(measure_streams(session, a, url, count, rows.size()));
    list.items.push_back(stream_row_json(row));
    if (session.json) continue;
    session.print(fmt::format("{:>8} {:>7} {:>9.1f} {:>16} {:>16} {:>16} {:>7}\n", row.streams, row.failed(),
                              row.rate(), fmt::format("{} / {}", as_ms(row.first().p50), as_ms(row.first().p99)),
                              fmt::format("{} / {}", as_ms(row.per_token().p50), as_ms(row.per_token().p99)),
                              as_ms(row.pause().max), row.tokens()));
  }
  const Document all = Document::map({{"server", Document::string(a.server)}, {"rows", std::move(list)}});
  if (session.json) session.print_json(all);
  if (a.output == "-" && !session.json) session.print_json(all);
  if (a.output && *a.output != "-") write_file_atomically(*a.output, print_json(all) + "\n");
  throw_if_failed(rows);
  if (!a.no_history) session.warn(bench::keep_record(stream_record_of(a, rows)));
  return kExitOk;
}

}  // namespace

CommandRow bench_serve_command() {
  return {.name = "serve",
          .summary = "clients that stream from a running server: tokens per second, first token, pauses",
          .description =
              "Connects so many clients to a server with OpenAI's API (yoke serve, vLLM, SGLang, llama-server) and "
              "streams an answer to each, all at once. Prompts are token ids, the same for every server. Prints the "
              "tokens per second of all streams together, the time to the first token and per token (median / p99 "
              "over the streams), and the longest pause between two pieces of an answer. Fails where a stream does "
              "not come to its end. Sends OPENAI_API_KEY where that is set.",
          .examples = {{"yoke bench serve --server http://127.0.0.1:8000 --streams 1,4,8,16", "a row for each number"},
                       {"yoke bench serve --streams 8 -n 256 --output answers.json", "with what each stream got"}},
          .prepare = [](OptionTable& table) -> Action {
            auto a = std::make_shared<StreamArguments>();
            table.value("--server", "URL", "which server (http://127.0.0.1:8000)", a->server);
            table.value("--streams", "LIST", "clients at once, such as 1,4,8,16 (8)", a->streams);
            table.value("--prompt-tokens", "N", "of each request (16)", a->prompt, {1, 1 << 20});
            table.value("-n,--tokens", "N", "of each answer (64)", a->tokens, {1, 1 << 20});
            table.value("--seed", "N", "another one asks other prompts (1)", a->seed, {0, 1'000'000'000});
            table.value("--temperature", "T", "of the sampling (0: the likeliest token)", a->temperature, {0, 2});
            table.value("-o,--output", "FILE",
                        "also write the rows with all answers to a file, as JSON; - is standard output", a->output);
            table.flag("--no-history", "do not keep this run in the history", a->no_history);
            return [a](Session& session) { return run_bench_serve(session, *a); };
          },
          .place = CommandPlace::kHead};
}

}  // namespace yoke::cli
