#include "yoke/engine/rank.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "yoke/base/file_tree.h"
#include "yoke/engine/agreement.h"
#include "yoke/engine/executor.h"
#include "yoke/engine/fit.h"
#include "yoke/engine/front_line.h"
#include "yoke/engine/prompt_pace.h"
#include "yoke/engine/rank_report.h"
#include "yoke/engine/scheduler.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/thread_pool.h"
#include "yoke/probe/available_memory.h"

namespace yoke {
namespace {

using namespace literals;

constexpr Seconds kIdleStep = 1_s;          // the others hear from rank 0 at least so often
constexpr std::int64_t kTokensLeast = 256;  // of a cache, where the user does not say
constexpr int kRanksHinted = 64;            // up to how many are named where a number of ranks does not work
constexpr int kRanksAdvised = 16;           // up to how many ranks are looked at for advice
constexpr Seconds kLastWordsLimit = 60_s;   // until a front has taken them

std::int64_t prompt_tokens(const StepPlan& plan) {
  std::int64_t tokens = 0;
  for (const PlanRow& row : plan.rows) tokens += row.fresh > 1 ? row.fresh : 0;
  return tokens;
}

class EngineRank {
 public:
  EngineRank(World& world, const EngineOptions& options, std::optional<Socket> front)
      : world_(world), options_(options) {
    if (front) front_.emplace(std::move(*front));
  }

  void run() {
    while (true) {
      try {
        prepare();
        serve();
        return;
      } catch (const AgreedError& error) {
        if (front_) front_->send(EngineFailed{error});
        say_last_words();
        throw;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kInterrupted) throw;
        recover(error);
      }
    }
  }

 private:
  // Everything up to the first step. All ranks go through it together, also after a death: whoever has done a part
  // already does nothing there.
  void prepare() {
    do_together(control(), node(), [&] { open(); });
    decide_cache();
    do_together(control(), node(), [&] { make_model(); });
    load();
    do_together(control(), node(), [&] { make_executor(); });
    executor_->restart(world_.comm(), control());
    if (!is_first()) return;
    if (!scheduler_) {
      scheduler_.emplace(SchedulerLimits{.vocabulary = model_->config().V,
                                         .context_most = context_most_,
                                         .pages = pages_for(cache_tokens_),
                                         .chunk_tokens = options_.chunk_tokens,
                                         .sequences_most = options_.sequences_most});
      scheduler_->set_chunk(pace_.chunk());
    }
    scheduler_->restart();
  }

  void open() {
    if (files_) return;
    auto files = std::make_unique<ModelFiles>(options_.model);
    config_ = read_llama_config(files->config());
    const int processors = available_processors() / std::max(1, world_.place().local_size);
    ops_ =
        make_backend(options_.backend, {.threads = options_.threads > 0 ? options_.threads : std::max(1, processors)});
    if (options_.context_most > config_.context) {
      throw Error(
          ErrorCode::kInvalid,
          fmt::format("the model was trained for {} tokens, not for {}", config_.context, options_.context_most),
          "give a smaller --context");
    }
    check_split(*files);
    fingerprint_ = files->fingerprint();
    files_ = std::move(files);
  }

  // Which numbers of ranks work is for the files to say too: groups of quantized weights cannot be cut everywhere.
  void check_split(const ModelFiles& files) const {
    const RankPlace& place = world_.place();
    const auto split = try_to([&] {
      part_of(config_, place.rank, place.size);
      llama_weight_bytes(files, config_, place.size);
    });
    if (split) return;
    const std::vector<int> counts = llama_rank_counts(files, config_, kRanksHinted);
    const bool other_cause = counts.empty() || std::find(counts.begin(), counts.end(), place.size) != counts.end();
    if (other_cause) throw Error(split.error());
    throw Error(split.error().code(), split.error().message(),
                fmt::format("numbers of ranks that work: {}", fmt::join(counts, ", ")));
  }

  RankReport report() const {
    const auto available = available_memory(DiskTree("/"));
    return {.node = node(),
            .local_size = world_.place().local_size,
            .available = available ? available->value : kMemoryUnknown,
            .cache_tokens = cache_tokens_,
            .model = fingerprint_};
  }

  void decide_cache() {
    std::vector<RankReport> reports;
    for (const std::string& text : gather_texts(control(), encode(report()))) reports.push_back(decode_report(text));
    do_together(control(), node(), [&] {
      check_same_model(reports);
      nodes_.clear();
      std::int64_t decided = 0;
      for (const RankReport& report : reports) {
        nodes_.push_back(report.node);
        decided = std::max(decided, report.cache_tokens);
      }
      const std::int64_t context = options_.context_most > 0 ? options_.context_most : config_.context;
      FitQuestion question{.ranks = memory_shares(reports), .need = [&](int ranks) { return need_of(ranks); }};
      question.tokens_wanted = decided > 0 ? decided : std::max(options_.cache_tokens, context);
      question.tokens_least = decided > 0 || options_.context_most > 0 || options_.cache_tokens > 0
                                  ? question.tokens_wanted
                                  : std::min(context, kTokensLeast);
      question.rank_counts = llama_rank_counts(*files_, config_, kRanksAdvised);
      cache_tokens_ = fit_cache(question);
      context_most_ = std::min(context, cache_tokens_);
    });
  }

  RankNeed need_of(int ranks) const {
    const LlamaConfig& c = config_;
    // The largest of what one step has at a time: x, its norm, q, k, v and their sum, or gate, up and down.
    const std::int64_t row = 4 * c.C + 2 * std::max(c.H * c.D, c.F) / ranks + c.H * c.D / ranks;
    const std::int64_t logits = std::int64_t{options_.sequences_most} * c.V / ranks;
    return {.weights = llama_weight_bytes(*files_, c, ranks),
            .work_space = Bytes{4 * (options_.chunk_tokens * row + logits)},
            .cache_per_token = llama_cache_bytes_per_token(c, ranks, options_.cache_type)};
  }

  void make_model() {
    if (model_) return;
    const RankPlace& place = world_.place();
    const Mesh mesh{.rank = place.rank, .size = place.size, .comm = nullptr};
    model_ = std::make_unique<Llama>(*files_, config_, mesh, *ops_);
    weights_ = llama_weight_bytes(*files_, config_, place.size);
  }

  // In step, so that ranks wait for each other a layer's time at most, and all hear of one's failure at once.
  void load() {
    while (true) {
      const std::int32_t mine = model_->load_steps() - model_->steps_loaded();
      std::int32_t most = mine;
      all_reduce(control(), &most, 1, DType::kI32, ReduceOp::kMax);
      if (most == 0) break;
      do_together(control(), node(), [&] {
        if (mine > 0) model_->load_step();
        if (mine == 1) files_->check_unchanged();
      });
      if (front_) front_->send(LoadProgress{.done = std::min(model_->bytes_loaded(), weights_), .total = weights_});
    }
  }

  void make_executor() {
    if (!executor_) {
      executor_.emplace(*model_, *ops_,
                        Executor::Cache{.pages = pages_for(cache_tokens_), .type = options_.cache_type});
    }
  }

  void serve() {
    tell_ready();
    while (true) {
      std::optional<StepPlan> own;
      if (is_first()) own = plan_step();
      const StepPlan plan = share_plan(control(), own);
      if (plan.end == PlanEnd::kEngine) return;
      const Instant start = real_clock().now();
      const std::vector<RowResult> results = executor_->run(plan);
      tell_recovered();
      if (!is_first()) continue;
      pace_.took(prompt_tokens(plan), to_seconds(real_clock().now() - start));
      scheduler_->set_chunk(pace_.chunk());
      for (const EngineEvent& event : scheduler_->take(results)) front_->send(event);
    }
  }

  StepPlan plan_step() {
    const bool can_work = scheduler_->has_work() && !front_->is_behind();
    for (FrontMessage& message : front_->take(can_work ? 0_s : kIdleStep)) {
      std::optional<RequestEnded> ended;
      if (auto* const request = std::get_if<Request>(&message)) {
        ended = scheduler_->submit(std::move(*request));
      } else {
        ended = scheduler_->cancel(std::get<CancelRequest>(message).id);
      }
      if (ended) front_->send(*ended);
    }
    if (front_->closed()) return {.end = PlanEnd::kEngine};
    if (front_->is_behind()) return {};  // a step of nothing: the others hear that rank 0 lives
    return scheduler_->next();
  }

  void tell_ready() {
    std::vector<Bytes> weights;
    for (const std::string& text : gather_texts(control(), std::to_string(model_->bytes_loaded().value))) {
      weights.push_back(Bytes{std::stoll(text)});
    }
    if (!front_ || told_ready_) return;
    told_ready_ = true;
    const int ranks = world_.place().size;
    const Bytes per_token = llama_cache_bytes_per_token(config_, ranks, options_.cache_type);
    front_->send(EngineReady{.ranks = ranks,
                             .nodes = nodes_,
                             .transport = world_.comm().describe(),
                             .backend = std::string(ops_->name()),
                             .vocabulary = config_.V,
                             .context_most = context_most_,
                             .cache_tokens = cache_tokens_,
                             .weights_each = weights,
                             .cache_each = Bytes{pages_for(cache_tokens_) * kPageTokens * per_token.value}});
  }

  void recover(const Error& error) {
    if (!failed_at_) failed_at_ = std::chrono::steady_clock::now();
    cause_ = error.message();
    try {
      world_.recover(error);
    } catch (const Error&) {
      say_last_words();
      throw;
    }
  }

  // The answer so far, and why the engine ends.
  void say_last_words() {
    if (front_) front_->flush(Deadline::after(kLastWordsLimit));
  }

  void tell_recovered() {
    if (!failed_at_) return;
    const std::chrono::duration<double> after = std::chrono::steady_clock::now() - *failed_at_;
    failed_at_.reset();
    if (front_) front_->send(EngineRecovered{.after = Seconds{after.count()}, .cause = cause_});
  }

  std::string node() const {
    const RankPlace& place = world_.place();
    return place.node.empty() ? fmt::format("the node of rank {}", place.rank) : place.node;
  }
  bool is_first() const { return world_.place().rank == 0; }
  Communicator& control() { return world_.control(); }

  World& world_;
  EngineOptions options_;
  std::optional<FrontLine> front_;
  std::unique_ptr<ModelFiles> files_;
  std::string fingerprint_;  // of these files
  LlamaConfig config_;
  std::unique_ptr<Backend> ops_;
  std::vector<std::string> nodes_;
  std::int64_t cache_tokens_ = 0;
  std::int64_t context_most_ = 0;
  Bytes weights_;
  std::unique_ptr<Llama> model_;
  std::optional<Executor> executor_;
  std::optional<Scheduler> scheduler_;  // of rank 0
  PromptPace pace_{options_.chunk_tokens};
  bool told_ready_ = false;
  std::optional<std::chrono::steady_clock::time_point> failed_at_;
  std::string cause_;
};

}  // namespace

void run_engine_rank(World& world, const EngineOptions& options, std::optional<Socket> front) {
  EngineRank(world, options, std::move(front)).run();
}

}  // namespace yoke
