#include "yoke/bench/calibrate_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/json.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/matmul_rate.h"
#include "yoke/bench/memory_rate.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/comm/local/local.h"
#include "yoke/engine/engine_connection.h"
#include "yoke/engine/engine_sockets.h"
#include "yoke/engine/rank.h"
#include "yoke/probe/available_memory.h"
#include "yoke/rank/local_world.h"
#include "yoke/rank/start.h"
#include "yoke/weights/made_weights.h"

namespace yoke::bench {
namespace {

constexpr const char* kCalibrateKind = "calibrate";
constexpr Seconds kSampleLimit{120};
constexpr Seconds kMemoryReturns{4};
constexpr std::int64_t kChunk = 128;         // tokens of prompts in one step: larger ones need work space for nothing
constexpr const char* kProgressMark = "# ";  // of rank 0's lines that tell how far it is
constexpr std::chrono::milliseconds kBetweenAnswers{25};
constexpr std::int64_t kShortPrompt = 4;  // tokens
constexpr std::int64_t kWarmAnswer = 8;   // tokens; before the answers that are timed

struct Times {
  double prefill = 0;
  double step = 0;
  std::string backend;
};

// Asks a few requests, one after the other, and times them, in a thread of its own: the caller's thread is the
// engine's.
class SampleClient {
 public:
  SampleClient(Socket line, const EngineSample& sample)
      : connection_(
            std::make_unique<engine::EngineConnection>(std::move(line), engine::EngineConnection::Ends::kConnection)),
        sample_(sample),
        thread_([this] {
          try {
            ask();
          } catch (...) {
            failure_ = std::current_exception();
          }
          connection_.reset();  // the engine reads the end
        }) {}
  ~SampleClient() {
    if (thread_.joinable()) thread_.join();
  }
  SampleClient(const SampleClient&) = delete;
  SampleClient& operator=(const SampleClient&) = delete;

  Times finish() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    return times_;
  }

 private:
  void ask() {
    const Deadline deadline = Deadline::after(kSampleLimit);
    await_ready(deadline);
    answer(0, deadline);
    std::vector<double> prefills, steps;
    for (int i = 1; i <= sample_.answers; ++i) {
      // Spread over time, so that what another program does for a moment is met by few of them.
      std::this_thread::sleep_for(kBetweenAnswers);
      const Times times = answer(i, deadline);
      if (has_whole_prompt(i)) prefills.push_back(times.prefill);
      steps.push_back(times.step);
    }
    times_.prefill = summarize(prefills).p25;
    times_.step = summarize(steps).p50;
  }

  engine::EngineEvent next(const Deadline& deadline) {
    auto event = connection_->next(deadline);
    if (!event) throw Error(ErrorCode::kTimeout, "the engine took too long over a sample of the calibration");
    return std::move(*event);
  }

  void await_ready(const Deadline& deadline) {
    while (true) {
      const engine::EngineEvent event = next(deadline);
      const auto* const ready = std::get_if<engine::EngineReady>(&event);
      if (ready == nullptr) continue;
      times_.backend = ready->backend;
      return;
    }
  }

  // Two prompts tell how fast prompts are read; more of them would take most of the time. What follows a long one does
  // depend on it.
  bool has_whole_prompt(int number) const { return number == 1 || number == 2 || sample_.prompt > kChunk; }

  // Each asks with other tokens: what an earlier request left in the cache must not save this one's prompt.
  Times answer(int number, const Deadline& deadline) {
    engine::Request request{.id = static_cast<std::uint64_t>(number + 1),
                            .answer_max = number == 0 ? kWarmAnswer : sample_.answer};
    const std::int64_t prompt = has_whole_prompt(number) ? sample_.prompt : kShortPrompt;
    for (std::int64_t i = 0; i < prompt; ++i) {
      request.prompt.push_back(static_cast<text::TokenId>(10 + number + i % 200));
    }
    const Instant asked = real_clock().now();
    connection_->submit(request);
    std::optional<Instant> first;
    Instant last = asked;
    int tokens = 0;
    while (true) {
      const engine::EngineEvent event = next(deadline);
      const Instant now = real_clock().now();
      if (std::holds_alternative<engine::TokenEvent>(event)) {
        if (!first) first = now;
        last = now;
        ++tokens;
      } else if (const auto* ended = std::get_if<engine::RequestEnded>(&event)) {
        if (ended->error) throw Error(*ended->error);
        break;
      }
    }
    if (!first || tokens < 2) return {};
    // The mean, as people count tokens a second.
    return {.prefill = to_seconds(*first - asked).value, .step = to_seconds(last - *first).value / (tokens - 1)};
  }

  std::unique_ptr<engine::EngineConnection> connection_;
  EngineSample sample_;
  Times times_;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the above
};

// As commands run it: the fastest backend, and the cache's usual type.
Times run_engine(rank::World& world, const EngineSample& sample, int threads) {
  const engine::EngineOptions options{.backend = "auto",
                                      .threads = threads,
                                      .context_max = sample.prompt + sample.answer + 1,
                                      .cache_type = tensor::DType::kBf16,
                                      .chunk_tokens = kChunk};
  const auto open_weights = [&]() -> std::unique_ptr<weights::WeightSource> {
    return std::make_unique<weights::MadeWeights>(
        weights::MakeModelOptions{.shape = shape_of(sample), .format = sample.format, .int4_group = sample.int4_group});
  };
  if (world.place().rank != 0) {
    run_engine_rank(world, options, std::nullopt, {.open_weights = open_weights});
    return {};
  }
  engine::EngineSocketPair line = engine::make_engine_sockets();
  SampleClient client(std::move(line.of_client), sample);
  try {
    run_engine_rank(world, options, std::move(line.of_engine), {.open_weights = open_weights});
  } catch (const Error&) {
    client.finish();  // throws what the engine told the client, which is nearer to the cause
    throw;
  }
  return client.finish();
}

// One rank's part: all ranks take the same samples at the same time.
class Sampler {
 public:
  Sampler(rank::World& world, int threads) : world_(world), threads_(threads) {}

  CalibrationSamples run() {
    CalibrationSamples result{.nodes = world_.comm().size(), .threads = threads_};
    const auto available = probe::available_memory(DiskTree("/"));
    result.memory = min(available ? static_cast<double>(available->value) : 0);
    measure_machine(result);
    take(result, samples_wanted(result.nodes));
    const auto last_cache = static_cast<double>(facts_of_this_machine(DiskTree()).last_cache.value);
    take(result, larger_samples(result, largest(last_cache)));
    return result;
  }

 private:
  double min(double value) { return reduced(value, comm::ReduceOp::kMin); }
  double largest(double value) { return reduced(value, comm::ReduceOp::kMax); }
  double reduced(double value, comm::ReduceOp op) {
    auto narrow = static_cast<float>(value);
    all_reduce(world_.control(), &narrow, 1, tensor::DType::kF32, op);
    return narrow;
  }

  void tell(const std::string& what) const {
    if (world_.place().rank != 0) return;
    fmt::print("{}{}\n", kProgressMark, what);
    std::fflush(stdout);
  }

  std::vector<int> cores() const {
    std::vector<int> cores = usable_cores();
    if (threads_ > 0 && static_cast<std::size_t>(threads_) < cores.size()) {
      // Ranks of one machine that are to share it take different cores.
      const auto first = static_cast<std::size_t>(world_.place().rank * threads_) % cores.size();
      std::rotate(cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(first), cores.end());
      cores.resize(static_cast<std::size_t>(threads_));
    }
    return cores;
  }

  void measure_machine(CalibrationSamples& result) {
    tell("memory and arithmetic");
    const double part = result.memory > 0 ? result.memory / 16 : 64e6;
    MemoryOptions options{
        .block = Bytes{static_cast<std::int64_t>(std::clamp(part, 4e6, 256e6))}, .rounds = 5, .cores = cores()};
    double bandwidth = 0;
    for (const MemoryRate& rate : measure_memory(options).rates) {
      if (rate.what == "read") bandwidth = std::max(bandwidth, rate.median.value);
    }
    double arithmetic = 0;
    for (const MatmulRate& rate : measure_matmul({.rounds = 3, .round = Seconds{0.03}, .cores = cores()})) {
      if (rate.type == tensor::DType::kF32) arithmetic = std::max(arithmetic, rate.median);
    }
    result.bandwidth = min(bandwidth);
    result.arithmetic = min(arithmetic);
  }

  // The kernel counts what a sample has given back only after a second or two, which a node as small as a lab's
  // notices: the next engine would be refused for memory that nobody uses.
  static void await_memory(double before) {
    const Deadline deadline = Deadline::after(kMemoryReturns);
    while (!deadline.expired()) {
      const auto available = probe::available_memory(DiskTree("/"));
      if (!available || static_cast<double>(available->value) >= 0.7 * before) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  void take(CalibrationSamples& result, const std::vector<EngineSample>& wanted) {
    for (EngineSample sample : wanted) {
      await_memory(result.memory);
      tell(sample.ranks > 1 ? fmt::format("engine over {} ranks: {}", sample.ranks, sample.name)
                            : fmt::format("engine: {}", sample.name));
      Times times;
      if (sample.ranks > 1) {
        times = run_engine(world_, sample, threads_);
      } else {
        auto alone = comm::local::make_local(1);
        times = run_engine(*rank::make_local_world(std::move(alone.front())), sample, threads_);
      }
      // Over ranks only the first has times; alone the slowest counts.
      sample.prefill = largest(times.prefill);
      sample.step = largest(times.step);
      if (!times.backend.empty()) result.backend = times.backend;
      result.samples.push_back(sample);
    }
  }

  rank::World& world_;
  int threads_;
};

void run_calibrate_rank(const job::RankPlace& place, const Document& task) {
  const Document* const threads = task.find("threads");
  if (threads == nullptr) throw Error(ErrorCode::kInvalid, fmt::format("{}: no threads", rank::kRankTaskVariable));
  const auto world = rank::join_world(place, {});
  const CalibrationSamples samples = Sampler(*world, static_cast<int>(from_json<std::int64_t>(*threads))).run();
  if (place.rank == 0) fmt::print("{}\n", print_json(to_json(samples), JsonLayout::kOneLine));
}

// Lines that tell how far rank 0 is, and its last one, the samples.
class SampleReader {
 public:
  explicit SampleReader(const CalibrateRequest& request) : request_(request) {}

  void take(std::string_view bytes) {
    held_ += bytes;
    for (std::size_t end = held_.find('\n'); end != std::string::npos; end = held_.find('\n')) {
      const std::string line = held_.substr(0, end);
      held_.erase(0, end + 1);
      if (!line.starts_with(kProgressMark)) {
        result_ = line;
      } else if (request_.on_progress) {
        request_.on_progress(line.substr(2));
      }
    }
  }
  CalibrationSamples finish() const { return from_json<CalibrationSamples>(parse_json(result_, "what rank 0 wrote")); }

 private:
  const CalibrateRequest& request_;
  std::string held_;
  std::string result_;
};

}  // namespace

CalibrationSamples measure_samples(const CalibrateRequest& request) {
  SampleReader reader(request);
  rank::Ranks::start(
      {.name = "bench-calibrate",
       .task = {.kind = kCalibrateKind,
                .content = Document::map({{"threads", Document::number(std::int64_t{request.threads})}})},
       .ranks = rank::rank_count(0, request.cluster, 1),
       .cluster = request.cluster,
       .on_output = [&](std::string_view bytes) { reader.take(bytes); }})
      ->wait();
  return reader.finish();
}

rank::RankKind calibrate_rank_kind() {
  return {.name = kCalibrateKind, .started_by = "yoke bench calibrate", .run = run_calibrate_rank};
}

}  // namespace yoke::bench
