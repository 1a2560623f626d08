#include "yoke/bench/model_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/processor_share.h"
#include "yoke/base/text.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/matmul_rate.h"
#include "yoke/bench/memory_rate.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/models/families.h"
#include "yoke/ops/backends.h"
#include "yoke/ops/cuda/measure.h"
#include "yoke/probe/available_memory.h"
#include "yoke/rank/value_carrier.h"
#include "yoke/weights/made_weights.h"
#include "yoke/weights/model_files.h"

namespace yoke::bench {
namespace {

constexpr std::int64_t kChunkTokens = 512;  // of a prompt in one step, as the engine has it
constexpr std::int64_t kSpeedPage = 16;     // tokens of a page of the cache

double seconds_since(Instant start) { return to_seconds(real_clock().now() - start).value; }

// What this process has held at most, by the kernel's count.
double peak_memory() {
  const auto status = DiskTree("/").read_trimmed("/proc/self/status");
  if (!status) return 0;
  for (const std::string& line : split(*status, '\n')) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
  }
  return 0;
}

std::unique_ptr<weights::WeightSource> open_source(const ModelSpeedOptions& options) {
  if (options.made) return std::make_unique<weights::MadeWeights>(*options.made);
  auto files = std::make_unique<weights::ModelFiles>(options.folder);
  files->set_page_cache(weights::PageCache::kKept);
  return files;
}

// The group of a rank that works alone: what others would add is left out. Its results mean nothing, its speed does.
class LoneRank final : public comm::Communicator {
 public:
  LoneRank(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void enqueue(const comm::Collective&, tensor::Stream) override {}
  tensor::Event record(tensor::Stream) override { return {}; }
  void wait(tensor::Event, Deadline) override {}
  void limit_operations(Seconds) override {}
  void abort(const Error&) override {}
  void rebuild(const spec::Membership&, Deadline) override {}
  std::unique_ptr<comm::Communicator> split(const std::vector<int>&) override {
    return std::make_unique<LoneRank>(rank_, size_);
  }
  std::string describe() const override { return "no exchange"; }

 private:
  int rank_, size_;
};

class SpeedMeter {
 public:
  SpeedMeter(rank::World& world, const ModelSpeedOptions& options)
      : world_(world),
        options_(options),
        source_(open_source(options)),
        outline_(models::outline_model(source_->config())),
        threads_(options.threads > 0 ? options.threads : own_threads()) {
    if (options.parts > 1 && ranks() > 1) {
      throw Error(ErrorCode::kUsage, "one rank's part is measured alone, not by several ranks", "leave out --ranks");
    }
    outline_->check_split(ranks() * options.parts);
    const double share = processor_share(DiskTree("/")) / std::max(1, world.place().local_size);
    auto inner = ops::make_backend(
        options.backend,
        {.threads = threads_,
         .core_sharing = threads_ > share ? SpinPolicy::CoreSharing::kMoreThanCores : SpinPolicy::CoreSharing::kNone,
         .arithmetic = options.exact ? ops::Arithmetic::kExact : ops::Arithmetic::kFast,
         .device = world.place().local_rank});
    is_ref_ = inner->name() == "ref";
    is_cuda_ = inner->name() == "cuda";
    ops_ = std::make_unique<ops::TimedBackend>(std::move(inner));
  }

  ModelSpeed run(const std::function<void(int)>& between) {
    ModelSpeed speed{.backend = std::string(ops_->name()),
                     .source = source_->where(),
                     .ranks = ranks(),
                     .threads = threads_,
                     .part = options_.part,
                     .parts = options_.parts,
                     .ceilings = measure_ceilings()};
    load(speed);
    prepare();
    speed.prefill.tokens = static_cast<double>(options_.prompt * options_.batch);
    speed.decode.tokens = static_cast<double>(options_.tokens * options_.batch);
    take_round(nullptr);  // warms caches, the thread pool and the arena
    ops_->take_times();
    for (int round = 0; round < options_.rounds; ++round) {
      if (between && world_.place().rank == 0) between(round);
      comm::barrier(world_.comm());
      take_round(&speed);
    }
    if (is_cuda_) measure_operations(speed);
    speed.step_bytes = 0;
    for (const OperationTime& time : speed.decode_operations) {
      speed.step_bytes += time.bytes / static_cast<double>(options_.rounds * options_.tokens);
    }
    speed.peak_memory = peak_memory();
    return speed;
  }

 private:
  int ranks() const { return world_.place().size; }
  int own_threads() const {
    return threads_for(processor_share(DiskTree("/")) / std::max(1, world_.place().local_size));
  }
  std::int64_t context_end() const { return options_.context + options_.prompt + options_.tokens + 1; }
  std::int64_t chunk() const { return std::min(options_.prompt, kChunkTokens); }

  // By as many cores as this rank has threads; ranks of one machine measure at once, as they will compute at once.
  ModelCeilings measure_ceilings() {
    if (is_cuda_) {
      const ops::cuda::DeviceRates rates = ops::cuda::measure_device(world_.place().local_rank);
      return {.read = rates.read, .arithmetic = rates.multiply, .plain = rates.multiply, .kind = "bf16"};
    }
    std::vector<int> cores = usable_cores();
    const auto first = static_cast<std::size_t>(world_.place().rank * threads_) % cores.size();
    std::rotate(cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(first), cores.end());
    cores.resize(std::min(cores.size(), static_cast<std::size_t>(threads_)));
    ModelCeilings ceilings{.kind = kind()};
    const auto available = probe::available_memory(DiskTree("/"));
    MemoryOptions memory{.rounds = 7, .cores = cores, .with_copy = false};
    if (available) memory.block = Bytes{std::clamp<std::int64_t>(available->value / 16, 4 << 20, 256 << 20)};
    for (const MemoryRate& rate : measure_memory(memory).rates) {
      if (rate.what == "read" && rate.cores == static_cast<int>(cores.size())) ceilings.read = rate.median.value;
    }
    for (const MatmulRate& rate : measure_matmul({.rounds = 3, .round = Seconds{0.03}, .cores = cores})) {
      if (rate.cores != static_cast<int>(cores.size())) continue;
      if (rate.type == tensor::DType::kF32) ceilings.plain = rate.best;
      if (to_string(rate.type) == (ceilings.kind == "int8" ? "i8" : ceilings.kind)) ceilings.arithmetic = rate.best;
    }
    return ceilings;
  }
  // The arithmetic that most weights want.
  std::string kind() const {
    const tensor::MatrixInfo info = source_->describe("model.layers.0.self_attn.q_proj");
    if (options_.exact || is_ref_) return "f32";
    if (info.format == tensor::MatrixFormat::kInt4 || info.format == tensor::MatrixFormat::kInt8) return "int8";
    return info.format == tensor::MatrixFormat::kPlain && info.value_type == tensor::DType::kBf16 ? "bf16" : "f32";
  }

  void load(ModelSpeed& speed) {
    const Instant start = real_clock().now();
    mesh_ = {.rank = world_.place().rank, .size = ranks()};
    if (options_.parts > 1) mesh_ = {.rank = options_.part, .size = options_.parts};
    model_ = outline_->make(*source_, mesh_, *ops_);
    while (model_->steps_loaded() < model_->load_steps()) {
      throw_if_interrupted();
      model_->load_step();
    }
    speed.load_seconds = seconds_since(start);
    speed.weight_bytes = static_cast<double>(model_->bytes_loaded().value);
    comm::Communicator* group = &carrier_.over(world_, ops_->stream());
    if (options_.parts > 1) group = &alone_.emplace(options_.part, options_.parts);
    model_->join({.tensor = group, .world = group});
    pages_each_ = tensor::ceil_divide(context_end(), kSpeedPage);
    const tensor::DType type = options_.exact || is_ref_ ? tensor::DType::kF32 : tensor::DType::kBf16;
    cache_ = model_->allocate_cache({.pages = pages_each_ * options_.batch, .page_tokens = kSpeedPage}, type);
    for (const ops::CacheLayer& layer : cache_.layers) {
      speed.cache_bytes += static_cast<double>(layer.keys.bytes() + layer.values.bytes());
      if (options_.context > 0) fill(layer);
    }
  }
  // What lies in the cache before the first round: the same small number everywhere.
  void fill(const ops::CacheLayer& layer) {
    for (const ops::Slab& slab : {layer.keys, layer.values}) {
      const std::vector<std::byte> content(slab.bytes(), std::byte{0x3c});
      ops_->upload(content, slab);
    }
  }

  void prepare() {
    const models::StepLimits limits{.tokens = std::max<std::int64_t>(chunk(), options_.batch),
                                    .logit_rows = options_.batch};
    arena_ = std::make_unique<ops::StepArena>(*ops_, outline_->arena_bytes(limits, mesh_));
    x_ = ops_->allocate({limits.tokens, outline_->facts().width}, tensor::DType::kF32);
    blocks_ = ops_->allocate({options_.batch, static_cast<std::int64_t>(ops::select_words(1))}, tensor::DType::kI32);
    for (int i = 0; i < options_.batch; ++i) ops_->open_slot(i, {});
    pages_.resize(static_cast<std::size_t>(pages_each_ * options_.batch));
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  // In a round of its own, by the GPU's clock: its marks keep kernels from beginning before the one before has ended.
  void measure_operations(ModelSpeed& speed) {
    ops_->time_on_device();
    ModelSpeed once;
    take_round(&once);
    for (auto* const operations : {&once.prefill_operations, &once.decode_operations}) {
      for (OperationTime& time : *operations) {
        time.calls *= options_.rounds;
        time.seconds *= options_.rounds;
        time.bytes *= options_.rounds;
        time.operations *= options_.rounds;
      }
    }
    speed.prefill_operations = std::move(once.prefill_operations);
    speed.decode_operations = std::move(once.decode_operations);
  }

  struct Part {
    int sequence = 0;
    std::int64_t begin = 0;
    std::vector<std::int32_t> ids;
  };

  // One step; the best token of each part, the same on all ranks.
  std::vector<std::int32_t> step(const std::vector<Part>& parts) {
    rows_.clear();
    for (const Part& part : parts) {
      const auto used = static_cast<std::size_t>(tensor::ceil_divide(part.begin + std::ssize(part.ids), kSpeedPage));
      const auto own = std::span(pages_).subspan(static_cast<std::size_t>(part.sequence * pages_each_), used);
      rows_.add_sequence(part.begin, part.ids, own);
      rows_.logit_rows.push_back(static_cast<std::int32_t>(rows_.ids.size()) - 1);
    }
    const ops::StepBatch batch = rows_.batch();
    const ops::Slab logits = model_->forward(batch, cache_, x_->slab().rows({0, batch.tokens()}), *arena_);
    std::vector<ops::SelectRow> wanted;
    for (const Part& part : parts) {
      wanted.push_back({.logit_row = static_cast<std::int32_t>(wanted.size()), .slot = part.sequence});
    }
    ops::Slab blocks = blocks_->slab();
    blocks.shape = {std::ssize(parts), static_cast<std::int64_t>(ops::select_words(1))};
    ops_->select(logits, static_cast<std::int32_t>(model_->vocabulary().begin), wanted, blocks);
    words_.resize(static_cast<std::size_t>(blocks.count()));
    ops_->download(blocks, std::as_writable_bytes(std::span(words_)));
    while (!ops_->passed(ops_->record())) {
    }
    return best_of_all(parts.size());
  }

  std::vector<std::int32_t> best_of_all(std::size_t rows) {
    const auto size = static_cast<std::size_t>(ranks());
    all_.resize(words_.size() * size);
    if (size > 1) {
      comm::all_gather(world_.control(), words_.data(), all_.data(), words_.size(), tensor::DType::kI32);
    } else {
      all_ = words_;
    }
    const std::size_t width = words_.size() / rows;
    std::vector<std::int32_t> best(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      float max = 0;
      for (std::size_t rank = 0; rank < size; ++rank) {
        const std::int32_t* const block = all_.data() + rank * words_.size() + row * width;
        if (block[0] == 0 || block[1] < 1)
          throw Error(ErrorCode::kInternal, "the model gave logits that are no numbers");
        const float logit = std::bit_cast<float>(block[ops::kSelectHeaderWords + 1]);
        if (rank == 0 || logit > max) {
          max = logit;
          best[row] = block[ops::kSelectHeaderWords];
        }
      }
    }
    return best;
  }

  // A prompt for each sequence, then tokens for all of them together.
  void take_round(ModelSpeed* speed) {
    throw_if_interrupted();
    std::vector<std::int32_t> made;
    const Instant start = real_clock().now();
    std::vector<std::int32_t> last(static_cast<std::size_t>(options_.batch), 1);
    for (int sequence = 0; sequence < options_.batch; ++sequence) {
      for (std::int64_t done = 0; done < options_.prompt; done += chunk()) {
        Part part{.sequence = sequence, .begin = options_.context + done, .ids = {}};
        for (std::int64_t i = done; i < std::min(done + chunk(), options_.prompt); ++i) {
          part.ids.push_back(static_cast<std::int32_t>((i * 7 + sequence * 13 + 3) % outline_->facts().vocabulary));
        }
        last[static_cast<std::size_t>(sequence)] = step({part}).front();
      }
    }
    if (speed != nullptr) {
      speed->prefill.seconds.push_back(seconds_since(start));
      add_times(speed->prefill_operations);
    }
    const Instant decoding = real_clock().now();
    for (std::int64_t i = 0; i < options_.tokens; ++i) {
      std::vector<Part> parts;
      for (int sequence = 0; sequence < options_.batch; ++sequence) {
        parts.push_back({sequence, options_.context + options_.prompt + i, {last[static_cast<std::size_t>(sequence)]}});
      }
      last = step(parts);
      made.insert(made.end(), last.begin(), last.end());
    }
    if (speed != nullptr) {
      speed->decode.seconds.push_back(seconds_since(decoding));
      add_times(speed->decode_operations);
    }
    if (!expected_.empty() && made != expected_) {
      throw Error(ErrorCode::kInternal, "two rounds over the same prompt made different tokens",
                  "please report this, with the model and this command");
    }
    expected_ = std::move(made);
  }

  void add_times(std::vector<OperationTime>& sums) {
    for (OperationTime& time : ops_->take_times()) {
      const auto found =
          std::find_if(sums.begin(), sums.end(), [&](const OperationTime& sum) { return sum.name == time.name; });
      if (found == sums.end()) {
        sums.push_back(std::move(time));
        continue;
      }
      found->calls += time.calls;
      found->seconds += time.seconds;
      found->bytes += time.bytes;
      found->operations += time.operations;
    }
  }

  rank::World& world_;
  const ModelSpeedOptions& options_;
  std::unique_ptr<weights::WeightSource> source_;
  std::unique_ptr<models::ModelOutline> outline_;
  int threads_;
  bool is_ref_ = false, is_cuda_ = false;
  std::optional<LoneRank> alone_;  // of one part of several
  rank::ValueCarrier carrier_;
  std::unique_ptr<ops::TimedBackend> ops_;
  models::Mesh mesh_;
  std::unique_ptr<models::LanguageModel> model_;
  models::KvCache cache_;
  std::int64_t pages_each_ = 0;
  std::unique_ptr<ops::StepArena> arena_;
  std::unique_ptr<ops::SlabMemory> x_, blocks_;
  std::vector<std::int32_t> pages_, words_, all_, expected_;
  ops::StepRows rows_;
};

double rate_at(const RateSamples& samples, double SampleStats::*at) {
  if (samples.seconds.empty()) return 0;
  const double seconds = summarize(samples.seconds).*at;
  return seconds > 0 ? samples.tokens / seconds : 0;
}

}  // namespace

double RateSamples::median() const { return rate_at(*this, &SampleStats::p50); }
double RateSamples::low() const { return rate_at(*this, &SampleStats::p75); }
double RateSamples::high() const { return rate_at(*this, &SampleStats::p25); }

ModelSpeed measure_model_speed(rank::World& world, const ModelSpeedOptions& options,
                               const std::function<void(int round)>& between) {
  return SpeedMeter(world, options).run(between);
}

double limit_seconds(const OperationTime& time, const ModelCeilings& ceilings) {
  const double arithmetic = time.name == "attention" ? ceilings.plain : ceilings.arithmetic;
  const double reading = ceilings.read > 0 ? time.bytes / ceilings.read : 0;
  return std::max(reading, arithmetic > 0 ? time.operations / arithmetic : 0);
}

}  // namespace yoke::bench
