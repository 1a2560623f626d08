// What `yoke bench model` prints, and what it keeps.
#include <fmt/format.h>

#include <numeric>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/bench/model_ranks.h"
#include "yoke/bench/sample_stats.h"

namespace yoke::bench {
namespace {

double total(const RateSamples& samples) {
  return std::accumulate(samples.seconds.begin(), samples.seconds.end(), 0.0);
}

struct OperationShare {
  double share = 0;  // of the time
  double limit = 0;  // the least time by the time; 0: no limit is known
};
OperationShare share_of(const OperationTime& time, const ModelCeilings& ceilings, double all) {
  return {.share = all > 0 ? time.seconds / all : 0,
          .limit = time.seconds > 0 ? limit_seconds(time, ceilings) / time.seconds : 0};
}

double rest_of(const std::vector<OperationTime>& operations, double all) {
  double sum = 0;
  for (const OperationTime& time : operations) sum += time.seconds;
  return std::max(0.0, all - sum);
}

std::string operation_table(const std::vector<OperationTime>& operations, const ModelSpeed& speed, double all,
                            double steps, const char* unit) {
  std::string out = fmt::format("{:>18} {:>12} {:>9} {:>9} {:>10} {:>13}\n", "operation", unit, "of time", "GB/s",
                                "Gop/s", "of its limit");
  for (const OperationTime& time : operations) {
    const OperationShare share = share_of(time, speed.ceilings, all);
    const auto rate = [&](double amount) {
      return amount > 0 && time.seconds > 0 ? fmt::format("{:.3g}", amount / time.seconds / 1e9) : std::string("-");
    };
    out += fmt::format("{:>18} {:>12.3g} {:>8.1f}% {:>9} {:>10} {:>13}\n", time.name, time.seconds / steps * 1e3,
                       100 * share.share, rate(time.bytes), rate(time.operations),
                       share.limit > 0 ? fmt::format("{:.0f}%", 100 * share.limit) : "-");
  }
  const double rest = rest_of(operations, all);
  out += fmt::format("{:>18} {:>12.3g} {:>8.1f}%\n", speed.ranks > 1 ? "sums over ranks" : "rest", rest / steps * 1e3,
                     all > 0 ? 100 * rest / all : 0);
  return out;
}

// Texts as long as the prompt that become vectors each second: the states that reading them ends with.
double embedding_rate(const ModelSpeed& speed, const ModelSpeedOptions& options) {
  return speed.prefill.median() / static_cast<double>(options.prompt);
}

double median_of(const std::vector<double>& samples) { return samples.empty() ? 0 : summarize(samples).p50; }

Document rates_json(const RateSamples& samples) {
  Document seconds = Document::list({});
  for (const double one : samples.seconds) seconds.items.push_back(Document::number(one));
  return Document::map({{"tokens", Document::number(samples.tokens)},
                        {"tokens_per_second", Document::number(samples.median())},
                        {"seconds", std::move(seconds)}});
}
RateSamples read_rates(const Document& document) {
  return {.seconds = from_json<std::vector<double>>(*document.find("seconds")),
          .tokens = from_json<double>(*document.find("tokens"))};
}
Document operations_json(const std::vector<OperationTime>& operations, const ModelSpeed& speed, double all) {
  Document list = Document::list({});
  for (const OperationTime& time : operations) {
    const OperationShare share = share_of(time, speed.ceilings, all);
    list.items.push_back(Document::map({{"name", Document::string(time.name)},
                                        {"calls", Document::number(time.calls)},
                                        {"seconds", Document::number(time.seconds)},
                                        {"bytes", Document::number(time.bytes)},
                                        {"operations", Document::number(time.operations)},
                                        {"of_time", Document::number(share.share)},
                                        {"of_limit", Document::number(share.limit)}}));
  }
  return list;
}
std::vector<OperationTime> read_operations(const Document& list) {
  std::vector<OperationTime> operations;
  for (const Document& item : list.items) {
    operations.push_back({.name = from_json<std::string>(*item.find("name")),
                          .calls = from_json<std::int64_t>(*item.find("calls")),
                          .seconds = from_json<double>(*item.find("seconds")),
                          .bytes = from_json<double>(*item.find("bytes")),
                          .operations = from_json<double>(*item.find("operations"))});
  }
  return operations;
}

}  // namespace

std::string model_text(const ModelRun& run, const ModelSpeedOptions& options) {
  const ModelSpeed& speed = run.speed;
  const double step_seconds = total(speed.decode);
  const auto steps = static_cast<double>(options.rounds * options.tokens);
  std::string out = fmt::format(
      "{}: {} rank{} of {} thread{}, backend {}\n"
      "Weights {:.0f} MB and cache {:.0f} MB a rank, {:.0f} MB held at most; loaded in {:.2f} s.\n"
      "Ceilings of a rank in this run: read {:.1f} GB/s, {} {:.0f} Gop/s, f32 {:.0f} Gop/s.\n\n",
      speed.source, speed.ranks, speed.ranks == 1 ? "" : "s", speed.threads, speed.threads == 1 ? "" : "s",
      speed.backend, speed.weight_bytes / 1e6, speed.cache_bytes / 1e6, speed.peak_memory / 1e6, speed.load_seconds,
      speed.ceilings.read / 1e9, speed.ceilings.kind, speed.ceilings.arithmetic / 1e9, speed.ceilings.plain / 1e9);
  if (options.prompt > 0) {
    out += fmt::format("Prefill: {} x {} tokens behind {}: {:.3g} tok/s\n", options.batch, options.prompt,
                       options.context, speed.prefill.median());
    out += operation_table(speed.prefill_operations, speed, total(speed.prefill),
                           static_cast<double>(options.rounds * options.batch), "ms/prompt");
    if (options.context == 0) {
      out += fmt::format("Embeddings: {:.3g} texts of {} tokens a second\n", embedding_rate(speed, options),
                         options.prompt);
    }
    out += "\n";
  }
  out += fmt::format("Decode: {} at once, {} tokens behind {}: {:.3g} tok/s", options.batch, options.tokens,
                     options.context + options.prompt, speed.decode.median());
  if (step_seconds > 0 && speed.ceilings.read > 0) {
    out += fmt::format(", {:.0f}% of what the memory carries ({:.0f} MB a step)",
                       100 * speed.step_bytes * steps / step_seconds / speed.ceilings.read, speed.step_bytes / 1e6);
  }
  out += "\n" + operation_table(speed.decode_operations, speed, step_seconds, steps, "ms/step");
  if (run.peer) {
    const auto line = [&](const char* what, double ours, double theirs) {
      if (theirs > 0) {
        out += fmt::format("{:>10} {:>10.3g} {:>12.3g} {:>8.2f}\n", what, ours, theirs, ours / theirs);
      }
    };
    out += fmt::format("\nBeside llama.cpp, in turns, medians, tok/s:\n{:>10} {:>10} {:>12} {:>8}\n", "", "yoke",
                       "llama.cpp", "ratio");
    line("prefill", speed.prefill.median(), median_of(run.peer->prefill));
    line("decode", speed.decode.median(), median_of(run.peer->decode));
  }
  return out;
}

Document to_json(const ModelSpeed& speed) {
  const ModelCeilings& ceilings = speed.ceilings;
  Document out = Document::map({{"source", Document::string(speed.source)},
                                {"backend", Document::string(speed.backend)},
                                {"ranks", Document::number(std::int64_t{speed.ranks})},
                                {"threads", Document::number(std::int64_t{speed.threads})},
                                {"weight_bytes", Document::number(speed.weight_bytes)},
                                {"step_bytes", Document::number(speed.step_bytes)},
                                {"cache_bytes", Document::number(speed.cache_bytes)},
                                {"peak_memory_bytes", Document::number(speed.peak_memory)},
                                {"load_seconds", Document::number(speed.load_seconds)}});
  out.add("ceilings", Document::map({{"read", Document::number(ceilings.read)},
                                     {"arithmetic", Document::number(ceilings.arithmetic)},
                                     {"f32", Document::number(ceilings.plain)},
                                     {"kind", Document::string(ceilings.kind)}}));
  out.add("prefill", rates_json(speed.prefill));
  out.add("decode", rates_json(speed.decode));
  out.add("prefill_operations", operations_json(speed.prefill_operations, speed, total(speed.prefill)));
  out.add("decode_operations", operations_json(speed.decode_operations, speed, total(speed.decode)));
  return out;
}

void from_json(const Document& document, ModelSpeed& speed) {
  const auto get = [](const Document& map, const char* key) -> const Document& {
    const Document* const found = map.find(key);
    if (found == nullptr) throw Error(ErrorCode::kInvalid, fmt::format("{}: no {}", map.where, key));
    return *found;
  };
  const Document& ceilings = get(document, "ceilings");
  speed = {.backend = from_json<std::string>(get(document, "backend")),
           .source = from_json<std::string>(get(document, "source")),
           .ranks = from_json<int>(get(document, "ranks")),
           .threads = from_json<int>(get(document, "threads")),
           .weight_bytes = from_json<double>(get(document, "weight_bytes")),
           .step_bytes = from_json<double>(get(document, "step_bytes")),
           .cache_bytes = from_json<double>(get(document, "cache_bytes")),
           .peak_memory = from_json<double>(get(document, "peak_memory_bytes")),
           .load_seconds = from_json<double>(get(document, "load_seconds")),
           .ceilings = {.read = from_json<double>(get(ceilings, "read")),
                        .arithmetic = from_json<double>(get(ceilings, "arithmetic")),
                        .plain = from_json<double>(get(ceilings, "f32")),
                        .kind = from_json<std::string>(get(ceilings, "kind"))},
           .prefill = read_rates(get(document, "prefill")),
           .decode = read_rates(get(document, "decode")),
           .prefill_operations = read_operations(get(document, "prefill_operations")),
           .decode_operations = read_operations(get(document, "decode_operations"))};
}

Document to_json(const ModelRun& run, const ModelSpeedOptions& options) {
  Document out = to_json(run.speed);
  out.add("prompt", Document::number(options.prompt));
  out.add("tokens", Document::number(options.tokens));
  out.add("context", Document::number(options.context));
  out.add("batch", Document::number(std::int64_t{options.batch}));
  if (options.prompt > 0 && options.context == 0) {
    out.add("embeddings_per_second", Document::number(embedding_rate(run.speed, options)));
  }
  if (run.peer) {
    out.add("peer", Document::map({{"name", Document::string("llama.cpp")},
                                   {"prefill_tokens_per_second", Document::number(median_of(run.peer->prefill))},
                                   {"decode_tokens_per_second", Document::number(median_of(run.peer->decode))}}));
  }
  return out;
}

RunRecord model_record(const ModelRun& run, const ModelSpeedOptions& options) {
  const ModelSpeed& speed = run.speed;
  RunRecord record = new_record("model", Document::map({{"model", Document::string(speed.source)},
                                                        {"backend", Document::string(speed.backend)},
                                                        {"ranks", Document::number(std::int64_t{speed.ranks})},
                                                        {"threads", Document::number(std::int64_t{speed.threads})},
                                                        {"context", Document::number(options.context)},
                                                        {"batch", Document::number(std::int64_t{options.batch})}}));
  const auto add = [&](std::string name, const RateSamples& samples) {
    record.rows.push_back({.name = std::move(name),
                           .size = 0,
                           .value = samples.median(),
                           .low = samples.low(),
                           .high = samples.high(),
                           .unit = "tok/s"});
  };
  if (options.prompt > 0) add(fmt::format("prefill {}", options.prompt), speed.prefill);
  add(fmt::format("decode behind {}", options.context + options.prompt), speed.decode);
  record.summary =
      fmt::format("{} rank{} x {} threads: prefill {:.3g}, decode {:.3g} tok/s", speed.ranks,
                  speed.ranks == 1 ? "" : "s", speed.threads, speed.prefill.median(), speed.decode.median());
  return record;
}

}  // namespace yoke::bench
