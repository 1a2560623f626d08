#include "yoke/models/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/processor_share.h"
#include "yoke/ops/ref/dequantize.h"

namespace yoke::models {
namespace {

void* reach(const ops::Slab& slab) { return reinterpret_cast<void*>(slab.address); }

int world_rank(const Mesh& mesh, int stage) { return stage * mesh.size + mesh.rank; }

[[noreturn]] void refuse_shape(const weights::WeightSource& source, const std::string& name, const tensor::Shape& has,
                               const tensor::Shape& wanted) {
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: '{}' is {} where config.json makes it {}", source.where(), name, to_string(has),
                          tensor::to_string(wanted)),
              "config.json and the weights do not belong together");
}

}  // namespace

void Mesh::sum(ops::Backend& ops, const ops::Slab& values) const {
  if (size == 1) return;
  YOKE_CHECK(groups.tensor != nullptr && groups.tensor->size() == size, "a mesh of {} ranks without its communicator",
             size);
  comm::all_reduce(*groups.tensor, reach(values), static_cast<std::size_t>(values.count()), values.type,
                   comm::ReduceOp::kSum, ops.stream());
}

void Mesh::share(ops::Backend& ops, const ops::Slab& values) const {
  if (size == 1) return;
  YOKE_CHECK(groups.tensor != nullptr && groups.tensor->size() == size, "a mesh of {} ranks without its communicator",
             size);
  comm::broadcast(*groups.tensor, reach(values), static_cast<std::size_t>(values.count()), values.type, 0,
                  ops.stream());
}

void Mesh::send_on(ops::Backend& ops, const ops::Slab& values) const {
  YOKE_CHECK(groups.world != nullptr && !is_last(), "stage {} of {}", stage, stages);
  groups.world->enqueue({.kind = comm::CollectiveKind::kSend,
                         .send = reach(values),
                         .count = static_cast<std::size_t>(values.count()),
                         .type = values.type,
                         .root = world_rank(*this, stage + 1)},
                        ops.stream());
}

void Mesh::take_over(ops::Backend& ops, const ops::Slab& values) const {
  YOKE_CHECK(groups.world != nullptr && !is_first(), "stage {} of {}", stage, stages);
  groups.world->enqueue({.kind = comm::CollectiveKind::kReceive,
                         .receive = reach(values),
                         .count = static_cast<std::size_t>(values.count()),
                         .type = values.type,
                         .root = world_rank(*this, stage - 1)},
                        ops.stream());
}

void LoadedStack::operator()(ops::Backend& ops, const ops::Slab& x, const ops::Slab& y,
                             ops::Activation activation) const {
  const ops::Slab* const added = bias != nullptr ? &bias->slab() : nullptr;
  ops.linear(*weight, x, y, {.bias = added, .activation = activation});
}

// ---- loading

void PartLoader::stack(std::vector<StackPart> parts, ops::MatrixUse use, LoadedStack& stack) {
  if (mode_ == Mode::kHint) {
    for (const StackPart& part : parts) {
      source_.will_need(part.module, part.slice);
      bytes_ += Bytes{static_cast<std::int64_t>(source_.describe(part.module, part.slice).stored_bytes)};
    }
    return;
  }
  std::vector<tensor::MatrixInfo> infos;
  for (const StackPart& part : parts) {
    const tensor::MatrixInfo whole = source_.describe(part.module);
    if (whole.rows != part.whole.rows || whole.columns != part.whole.columns) {
      refuse_shape(source_, part.module, {whole.rows, whole.columns}, {part.whole.rows, part.whole.columns});
    }
    infos.push_back(part.slice.axis == tensor::Slice::Axis::kWhole ? whole : source_.describe(part.module, part.slice));
  }
  bytes_ += Bytes{static_cast<std::int64_t>(counting_.packed_bytes(infos, use))};
  load_bias(parts, stack);
  if (mode_ == Mode::kLoad) jobs_.push_back({std::move(parts), use, &stack});
}

void PartLoader::load_bias(const std::vector<StackPart>& parts, LoadedStack& stack) {
  std::vector<float> all;
  bool any = false;
  for (const StackPart& part : parts) {
    const bool by_inputs = part.slice.axis == tensor::Slice::Axis::kColumns;
    const std::int64_t rows = part.slice.axis == tensor::Slice::Axis::kRows ? part.slice.range.size() : part.whole.rows;
    const std::size_t begin = all.size();
    all.resize(begin + static_cast<std::size_t>(rows));
    if (part.bias == Bias::kNone || (by_inputs && mesh_.rank > 0)) continue;
    any = true;
    const std::string name = part.module + ".bias";
    if (const tensor::Shape shape = source_.vector_shape(name); shape != tensor::Shape{part.whole.rows}) {
      refuse_shape(source_, name, shape, {part.whole.rows});
    }
    if (mode_ != Mode::kLoad) continue;
    const tensor::Tensor loaded = source_.vector(name, by_inputs ? tensor::Slice{} : part.slice);
    ops::ref::to_floats(loaded.raw(), loaded.type(), 1, std::span(all).subspan(begin));
  }
  if (!any) return;
  bytes_ += Bytes{static_cast<std::int64_t>(all.size() * sizeof(float))};
  if (mode_ == Mode::kLoad) stack.bias = upload(all);
}

std::unique_ptr<ops::SlabMemory> PartLoader::upload(std::span<const float> values) {
  auto memory = ops_->allocate({std::ssize(values)}, tensor::DType::kF32);
  ops_->upload(std::as_bytes(values), memory->slab());
  return memory;
}

std::unique_ptr<ops::SlabMemory> PartLoader::vector(const std::string& name, std::int64_t elements) {
  if (mode_ == Mode::kHint) return nullptr;
  if (const tensor::Shape shape = source_.vector_shape(name); shape != tensor::Shape{elements}) {
    refuse_shape(source_, name, shape, {elements});
  }
  bytes_ += Bytes{elements * static_cast<std::int64_t>(sizeof(float))};
  if (mode_ != Mode::kLoad) return nullptr;
  return upload(ops::ref::to_floats(source_.vector(name)));
}

void PartLoader::run(const Job& job) {
  std::vector<tensor::Matrix> views;
  for (const StackPart& part : job.parts) views.push_back(source_.matrix(part.module, part.slice));
  job.target->weight = ops_->pack(views, job.use);
  for (const tensor::Matrix& view : views) source_.done_with(view);
}

void PartLoader::finish() {
  const std::vector<Job> jobs = std::exchange(jobs_, {});
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < jobs.size(); i = next++) run(jobs[i]);
    } catch (...) {
      next = jobs.size();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    const auto threads = static_cast<std::size_t>(threads_for(processor_share(DiskTree("/"))));
    for (std::size_t i = 1; i < std::min(threads, jobs.size()); ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

void VocabularyPart::load(PartLoader& loader, const std::string& module, MatrixShape whole, ops::MatrixUse use) {
  range = near_equal_part(whole.rows, loader.source().row_step(module), loader.mesh().rank, loader.mesh().size);
  loader.stack({{.module = module, .whole = whole, .slice = tensor::Slice::rows(range)}}, use, table);
}

void VocabularyPart::embed(ops::Backend& ops, const Mesh& mesh, const ops::Slab& x) const {
  ops.embed(*table.weight, static_cast<std::int32_t>(range.begin), x);
  mesh.sum(ops, x);
}

tensor::Range near_equal_part(std::int64_t extent, std::int64_t step, int rank, int size) {
  const std::int64_t steps = tensor::ceil_divide(extent, step);
  const auto cut = [&](std::int64_t index) { return std::min(extent, steps * index / size * step); };
  return {cut(rank), cut(rank + 1)};
}

}  // namespace yoke::models
