#include "yoke/engine/rank.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>

#include "yoke/base/file_tree.h"
#include "yoke/base/processor_share.h"
#include "yoke/engine/agreement.h"
#include "yoke/engine/client_connection.h"
#include "yoke/engine/executor.h"
#include "yoke/engine/fit.h"
#include "yoke/engine/intake.h"
#include "yoke/engine/placement.h"
#include "yoke/engine/rank_need.h"
#include "yoke/engine/rank_report.h"
#include "yoke/engine/scheduler.h"
#include "yoke/engine/step_book.h"
#include "yoke/engine/step_pace.h"
#include "yoke/engine/step_trace.h"
#include "yoke/models/families.h"
#include "yoke/ops/backends.h"
#include "yoke/probe/available_memory.h"
#include "yoke/probe/memory_kind.h"
#include "yoke/rank/value_carrier.h"
#include "yoke/weights/model_files.h"

namespace yoke::engine {
namespace {

using namespace literals;

constexpr Seconds kIdleStep = 1_s;           // the others hear from rank 0 at least so often
constexpr std::int64_t kMinTokens = 256;     // of a cache, where the user does not say
constexpr int kRanksHinted = 64;             // up to how many are named where a number of ranks does not work
constexpr int kRanksAdvised = 16;            // up to how many ranks are looked at for advice
constexpr Seconds kErrorReportLimit = 60_s;  // until a client has taken them
// One rank may read a layer from a slow disk while the others wait. Who dies or stands still is told by heartbeats.
constexpr Seconds kLoadingLimit = 300_s;
// Of one exchange in a step, once a step has shown how long it takes.
constexpr double kStepLimitFactor = 20;  // of the longest step
// A rank that joins others at work tries so often to read its part before all end for its sake.
constexpr int kNewcomersTries = 5;
constexpr Seconds kFirstPause = 0.1_s;  // each is twice as long as the one before

class EngineRank {
 public:
  EngineRank(rank::World& world, const EngineOptions& options, std::optional<Socket> client, RankParts parts)
      : world_(world), options_(options), parts_(std::move(parts)) {
    if (client) client_.emplace(std::move(*client));
  }

  void run() {
    while (true) {
      try {
        prepare();
        serve();
        return;
      } catch (const AgreedError& error) {
        if (client_) client_->send(EngineFailed{error});
        print_last_error();
        throw;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kInterrupted) throw;
        recover(error);
      } catch (const std::bad_alloc&) {
        recover(Error(ErrorCode::kExhausted, "out of memory"));
      }
    }
  }

 private:
  // Everything up to the first step. All ranks go through it together, also after a death: the one that has done a part
  // already does nothing there.
  void prepare() {
    limit_operations(kLoadingLimit);
    joins_others_ = somebody_has_served();
    do_together(control(), node(), [&] { read_patiently([&] { open(); }); });
    decide();
    do_together(control(), node(), [&] { make_model(); });
    load();
    do_together(control(), node(), [&] { make_executor(); });
    join_groups();
    executor_->restart(mesh_, trace_.control());
    sharing_ = {};
    under_way_.clear();
    longest_step_.reset();
    if (!is_first()) return;
    if (!scheduler_) {
      scheduler_.emplace(SchedulerLimits{.vocabulary = facts().vocabulary,
                                         .context_max = context_max_,
                                         .pages = pages_for(cache_tokens_),
                                         .budget = pace_.budget(),
                                         .sequences_max = options_.sequences_max,
                                         .stages = mesh_.stages});
      return;
    }
    client_->send(scheduler_->restart(cause_));
  }

  bool somebody_has_served() {
    std::int32_t served = ready_reported_ ? 1 : 0;
    comm::all_reduce(control(), &served, 1, tensor::DType::kI32, comm::ReduceOp::kMax);
    return served != 0;
  }

  // Others hold the model and unfinished answers: a file system that fails for a moment does not end them.
  template <class Work>
  void read_patiently(const Work& work) {
    Seconds pause = kFirstPause;
    for (int tries_left = joins_others_ ? kNewcomersTries : 1;; --tries_left) {
      try {
        return work();
      } catch (const Error& error) {
        if (tries_left <= 1 || error.code() == ErrorCode::kInterrupted) throw;
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(pause.value));
      pause = Seconds{2 * pause.value};
    }
  }

  void open() {
    if (source_) return;
    std::unique_ptr<weights::WeightSource> source;
    if (parts_.open_weights) {
      source = parts_.open_weights();
    } else {
      auto files = std::make_unique<weights::ModelFiles>(options_.model);
      files_ = files.get();
      source = std::move(files);
    }
    outline_ = models::outline_model(source->config());
    // Only to count what it will hold: how many threads it gets is known when all ranks have said where they are.
    counting_ = parts_.make_backend(options_.backend, {.threads = 1, .device = world_.place().local_rank});
    if (options_.context_max > facts().context) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("the model was trained for {} tokens, not for {}", facts().context, options_.context_max),
                  "give a smaller --context");
    }
    // Also says what is missing of the weights.
    outline_->weight_bytes(*source, {.rank = 0, .size = 1}, *counting_);
    fingerprint_ = source->fingerprint();
    source_ = std::move(source);
  }

  RankReport report() const {
    const DiskTree tree("/");
    const auto on_device = counting_->memory_available();
    const auto available = on_device ? on_device : probe::available_memory(tree);
    return {.node = node(),
            .local_size = world_.place().local_size,
            .available = available ? available->value : kMemoryUnknown,
            .unified = !on_device && probe::memory_kind(DiskTree("/")) == spec::MemoryKind::kUnified,
            .devices = on_device ? world_.devices() : 0,
            .cache_tokens = cache_tokens_,
            .cut = cut_,
            .machine = tree.read_trimmed("/proc/sys/kernel/random/boot_id").value_or(""),
            .model = fingerprint_};
  }

  // Who holds what, and how large the cache is: all ranks conclude the same from the same reports.
  void decide() {
    std::vector<RankReport> reports;
    for (const std::string& text : gather_texts(control(), encode(report()))) reports.push_back(decode_report(text));
    do_together(control(), node(), [&] {
      check_same_model(reports);
      nodes_.clear();
      for (const RankReport& report : reports) nodes_.push_back(report.node);
      const std::vector<RankMemory> memory = memory_shares(reports);
      decide_mesh(reports, memory);
      decide_cache(reports, memory);
      make_ops(reports);
    });
  }

  void decide_mesh(const std::vector<RankReport>& reports, const std::vector<RankMemory>& memory) {
    const int ranks = world_.place().size;
    // Which numbers of ranks work is for the files to say too: groups of quantized weights cannot be cut everywhere.
    tensor_ = tensor_size(ranks, outline_->rank_counts(*source_, *counting_, ranks));
    for (const RankReport& report : reports) {
      if (!report.cut.empty()) cut_ = report.cut;
    }
    if (cut_.empty()) cut_ = cut_layers(stage_rooms(memory), facts().layers, layer_bytes());
    mesh_ = place_in_mesh(world_.place().rank, tensor_, cut_, facts().layers);
  }

  std::vector<StageRoom> stage_rooms(const std::vector<RankMemory>& memory) const {
    const int stages = world_.place().size / tensor_;
    std::vector<StageRoom> rooms;
    for (int stage = 0; stage < stages; ++stage) {
      const models::Mesh only_ends{
          .rank = tensor_ - 1, .size = tensor_, .stage = stage, .stages = stages, .layers = {0, 0}};
      StageRoom room{.available = memory[static_cast<std::size_t>(stage * tensor_)].available,
                     .ends = outline_->weight_bytes(*source_, only_ends, *counting_)};
      for (int rank = 0; rank < tensor_; ++rank) {
        room.available = std::min(room.available, memory[static_cast<std::size_t>(stage * tensor_ + rank)].available);
      }
      rooms.push_back(room);
    }
    return rooms;
  }
  Bytes layer_bytes() const {
    const models::Mesh one{.rank = tensor_ - 1, .size = tensor_, .stage = 1, .stages = 3, .layers = {0, 1}};
    return outline_->weight_bytes(*source_, one, *counting_);
  }

  // Every stage by itself, as they hold different parts; the cache is as long as the shortest allows.
  void decide_cache(const std::vector<RankReport>& reports, const std::vector<RankMemory>& memory) {
    std::int64_t decided = 0;
    for (const RankReport& report : reports) decided = std::max(decided, report.cache_tokens);
    const std::int64_t context = options_.context_max > 0 ? options_.context_max : facts().context;
    FitQuestion question;
    const bool is_given = options_.context_max > 0 || options_.cache_tokens > 0;
    question.tokens_wanted = decided > 0 ? decided : std::max(options_.cache_tokens, context);
    question.tokens_min = decided > 0 || is_given ? question.tokens_wanted : std::min(context, kMinTokens);
    question.rank_counts = outline_->rank_counts(*source_, *counting_, kRanksAdvised);
    for (int stage = 0; stage < static_cast<int>(cut_.size()); ++stage) {
      const auto first = memory.begin() + stage * tensor_;
      question.ranks.assign(first, first + tensor_);
      const models::Mesh place = place_in_mesh(stage * tensor_ + tensor_ - 1, tensor_, cut_, facts().layers);
      question.need = [&](int ranks) {
        return need_of(ranks == tensor_ ? place : models::Mesh{.rank = ranks - 1, .size = ranks});
      };
      if (decided == 0 && !is_given) {
        question.tokens_wanted = default_cache_tokens(need_of(place), question.tokens_wanted);
      }
      question.tokens_wanted = fit_cache(question);
    }
    cache_tokens_ = question.tokens_wanted;
    context_max_ = std::min(context, cache_tokens_);
    choose_page_cache(memory);
  }

  models::StepLimits limits() const { return step_limits(facts(), options_); }
  RankNeed need_of(const models::Mesh& mesh) const {
    return rank_need(*source_, *outline_, *counting_, options_, mesh);
  }

  // Files stay in the page cache if there is room beside what we hold, and always where ranks of a node share them.
  void choose_page_cache(const std::vector<RankMemory>& memory) {
    const RankNeed need = need_of(mesh_);
    const Bytes held = need.weights + need.work_space + Bytes{need.cache_per_token.value * cache_tokens_};
    const RankMemory& own = memory[static_cast<std::size_t>(world_.place().rank)];
    const bool scarce = own.available.value - held.value < need.weights.value;
    if (files_ == nullptr) return;
    files_->set_page_cache(scarce && world_.place().local_size <= 1 ? weights::PageCache::kDropped
                                                                    : weights::PageCache::kKept);
  }

  // Threads: this machine's share of the processors, divided among all ranks that compute on it.
  void make_ops(const std::vector<RankReport>& reports) {
    if (ops_) return;
    const int here = ranks_on_machine(reports, static_cast<std::size_t>(world_.place().rank));
    const double share = processor_share(DiskTree("/")) / here;
    const int threads = options_.threads > 0 ? options_.threads : threads_for(share);
    threads_ = threads;
    ops_ = std::make_unique<ops::TimedBackend>(parts_.make_backend(
        options_.backend,
        {.threads = threads,
         .core_sharing = threads > share ? SpinPolicy::CoreSharing::kMoreThanCores : SpinPolicy::CoreSharing::kNone,
         .arithmetic = options_.exact ? ops::Arithmetic::kExact : ops::Arithmetic::kFast,
         .device = world_.place().local_rank}));
  }

  void make_model() {
    if (model_) return;
    model_ = outline_->make(*source_, mesh_, *ops_);
    weights_ = outline_->weight_bytes(*source_, mesh_, *ops_);
  }

  void join_groups() {
    tensor_group_.reset();
    comm::Communicator& carrier = carrier_.over(world_, ops_->stream());
    timed_.emplace(carrier);
    mesh_.groups = {.tensor = &*timed_, .world = &*timed_};
    // Stages compute different plans at a time: their exchanges cannot be put beside each other.
    book_.watch(ops_.get(), &*timed_, mesh_.stages == 1);
    trace_.join(*ops_, *timed_, control());
    if (mesh_.stages == 1 || mesh_.size == 1) return;
    std::vector<int> members;
    for (int rank = 0; rank < tensor_; ++rank) members.push_back(mesh_.stage * tensor_ + rank);
    tensor_group_ = carrier.split(members);
    mesh_.groups.tensor = &trace_.join_stage(*tensor_group_);
  }

  void limit_operations(Seconds limit) {
    world_.comm().limit_operations(limit);
    control().limit_operations(limit);
    if (tensor_group_) tensor_group_->limit_operations(limit);
  }

  // In step, so that ranks wait for each other a layer's time at most, and all hear of one's failure at once.
  void load() {
    while (true) {
      const std::int32_t mine = model_->load_steps() - model_->steps_loaded();
      std::int32_t most = mine;
      comm::all_reduce(control(), &most, 1, tensor::DType::kI32, comm::ReduceOp::kMax);
      if (most == 0) break;
      do_together(control(), node(), [&] {
        if (mine > 0) read_patiently([&] { model_->load_step(); });
        if (mine == 1) source_->check_unchanged();
      });
      if (client_) client_->send(LoadProgress{.done = std::min(model_->bytes_loaded(), weights_), .total = weights_});
    }
  }

  void make_executor() {
    if (executor_) return;
    executor_.emplace(*model_, *ops_,
                      ExecutorOptions{.pages = pages_for(cache_tokens_),
                                      .cache_type = options_.cache_type,
                                      .limits = limits(),
                                      .vocabulary = facts().vocabulary,
                                      .width = facts().width,
                                      .stages = mesh_.stages,
                                      .tokenizer = options_.model / "tokenizer.json"},
                      outline_->arena_bytes(limits(), mesh_));
  }

  void serve() {
    report_ready();
    while (true) {
      std::optional<StepPlan> own;
      const bool goes_on = is_first() && scheduler_->has_work();
      // Where all have just computed, nobody waits for a client.
      const bool is_busy = !under_way_.empty() && under_way_.front().prompt + under_way_.front().answers > 0;
      const Instant begin = real_clock().now();
      if (is_busy) trace_.begin_step();
      if (is_first()) own = plan_step();
      StepPlan plan = sharing_.share(is_busy ? trace_.control() : control(), std::move(own));
      if (!is_busy) trace_.begin_step();
      if (plan.end == PlanEnd::kEngine) return;
      const bool sends_account = plan.end == PlanEnd::kAccount;
      under_way_.push_front(count_tokens(plan));
      if (std::ssize(under_way_) > mesh_.stages) under_way_.pop_back();
      if (is_own_step()) book_.before_step(own_tokens());
      const Instant start = real_clock().now();
      const std::vector<RowResult> results = executor_->run(std::move(plan));
      report_recovered();
      const Instant end = real_clock().now();
      learn_step(to_seconds(end - start));
      if (is_first()) client_->send(scheduler_->take(results));
      keep_book(to_seconds(end - (goes_on ? begin : start)));
      trace_.end_step(is_own_step() ? own_tokens() : StepTokens{}, sum_of_stages(under_way_));
      if (sends_account) send_account();
    }
  }

  // How long a step takes, and what it is made of: with several stages, of a step for each.
  void learn_step(Seconds took) {
    const StepTokens all = sum_of_stages(under_way_);
    if (all.prompt + all.answers == 0) return;
    learn_limit(took);
    if (!is_first()) return;
    pace_.took(all.prompt, all.answers, took, under_way_.front().prompt);
    scheduler_->set_budget(pace_.budget());
  }

  // Of the plan that this stage has just computed. On rank 0 planning and telling belong to a step, where one follows
  // the other.
  void keep_book(Seconds took) {
    const bool computed = is_own_step() && own_tokens().prompt + own_tokens().answers > 0;
    if (computed) book_.add(own_tokens(), took);
    if (!computed) book_.skip();
  }
  // The plan that this stage computes now.
  const StepTokens& own_tokens() const { return under_way_[static_cast<std::size_t>(mesh_.stage)]; }
  bool is_own_step() const { return mesh_.stage < std::ssize(under_way_); }

  void send_account() {
    std::vector<spec::RailUse> rails = world_.comm().rail_uses();
    look_up_routes(rails);
    const BookFacts facts{.rank = world_.place().rank,
                          .node = node(),
                          .machine = DiskTree("/").read_trimmed("/proc/sys/kernel/random/boot_id").value_or(""),
                          .threads = threads_,
                          .weights = static_cast<double>(model_->bytes_loaded().value)};
    const std::vector<std::string> pages = gather_texts(control(), book_.page(facts, std::move(rails)));
    std::vector<spec::RankTrace> traces = trace_.gather(node(), mesh_);
    if (client_) client_->send(EngineAccount{join_books(pages, world_.comm().describe()), std::move(traces)});
  }

  void learn_limit(Seconds took) {
    if (longest_step_ && took <= *longest_step_) return;
    longest_step_ = took;
    limit_operations(std::max(parts_.step_limit, Seconds{kStepLimitFactor * took.value}));
  }

  StepPlan plan_step() {
    const bool can_work = scheduler_->has_work() && !client_->is_behind();
    account_wanted_ |= take_messages(*client_, *scheduler_, can_work ? 0_s : kIdleStep);
    if (client_->closed()) return {.end = PlanEnd::kEngine};
    if (client_->is_behind()) return scheduler_->pause();  // a step of nothing: the others hear that rank 0 lives
    StepPlan plan = scheduler_->next();
    if (scheduler_->suspect() && scheduler_->suspect() != alone_reported_)
      client_->send(RequestAlone{*scheduler_->suspect()});
    alone_reported_ = scheduler_->suspect();
    if (std::exchange(account_wanted_, false)) plan.end = PlanEnd::kAccount;
    return plan;
  }

  void report_ready() {
    std::vector<Bytes> weights;
    for (const std::string& text : gather_texts(control(), std::to_string(model_->bytes_loaded().value))) {
      weights.push_back(Bytes{std::stoll(text)});
    }
    if (std::exchange(ready_reported_, true) || !client_) return;
    const int ranks = world_.place().size;
    const Bytes per_token = outline_->cache_bytes_per_token(mesh_, options_.cache_type);
    client_->send(EngineReady{.ranks = ranks,
                              .nodes = nodes_,
                              .transport = world_.comm().describe(),
                              .backend = std::string(ops_->name()),
                              .vocabulary = facts().vocabulary,
                              .context_max = context_max_,
                              .context_of_model = facts().context,
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
      print_last_error();
      throw;
    }
  }

  // The answer so far, and why the engine ends.
  void print_last_error() {
    if (client_) client_->flush(Deadline::after(kErrorReportLimit));
  }

  void report_recovered() {
    if (!failed_at_) return;
    const std::chrono::duration<double> after = std::chrono::steady_clock::now() - *failed_at_;
    failed_at_.reset();
    if (client_) client_->send(EngineRecovered{.after = Seconds{after.count()}, .cause = cause_});
  }

  std::string node() const {
    const job::RankPlace& place = world_.place();
    return place.node.empty() ? fmt::format("the node of rank {}", place.rank) : place.node;
  }
  const models::LanguageFacts& facts() const { return outline_->facts(); }
  bool is_first() const { return world_.place().rank == 0; }
  comm::Communicator& control() { return world_.control(); }

  rank::World& world_;
  EngineOptions options_;
  const RankParts parts_;
  std::optional<ClientConnection> client_;
  std::unique_ptr<weights::WeightSource> source_;
  weights::ModelFiles* files_ = nullptr;  // the same, where weights come from files
  std::string fingerprint_;               // of these files
  std::unique_ptr<models::ModelOutline> outline_;
  std::unique_ptr<ops::Backend> counting_;
  std::unique_ptr<ops::TimedBackend> ops_;
  int threads_ = 1;
  std::vector<std::string> nodes_;
  int tensor_ = 1;                 // ranks that share each layer
  std::vector<std::int64_t> cut_;  // the first layers of all stages
  models::Mesh mesh_;
  std::unique_ptr<comm::Communicator> tensor_group_;  // where it is not the world
  rank::ValueCarrier carrier_;
  std::optional<comm::TimedCommunicator> timed_;  // of what the model exchanges
  StepBook book_;
  StepTrace trace_{options_.trace ? StepTrace::Keeps::kSpans : StepTrace::Keeps::kNothing};
  bool account_wanted_ = false;  // by the client
  std::int64_t cache_tokens_ = 0;
  std::int64_t context_max_ = 0;
  Bytes weights_;
  std::unique_ptr<models::LanguageModel> model_;
  std::optional<Executor> executor_;
  PlanSharing sharing_;
  std::deque<StepTokens> under_way_;  // of the steps that the stages are at, the newest first
  std::optional<Seconds> longest_step_;
  std::optional<Scheduler> scheduler_;  // of rank 0
  StepPace pace_{options_.chunk_tokens};
  std::optional<std::uint64_t> alone_reported_;
  bool ready_reported_ = false;
  bool joins_others_ = false;  // who have served already
  std::optional<std::chrono::steady_clock::time_point> failed_at_;
  std::string cause_;
};

}  // namespace

void run_engine_rank(rank::World& world, const EngineOptions& options, std::optional<Socket> client, RankParts parts) {
  EngineRank(world, options, std::move(client), std::move(parts)).run();
}

}  // namespace yoke::engine
