// The one test body over all backends. A backend gives each rank its communicator, as threads of one process or as
// processes, and each rank calls
//
//   const std::vector<std::string> failures = run_communicator_cases(comm, options);   // empty: all is well
//
// What a rank does follows from its rank and the number of ranks alone, so that nothing else connects them. Results are
// predicted and compared bitwise, with guard bytes around each buffer; a failure names its case. After an Error the
// body ends, for the communicator is good for nothing more. Only tests include this.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "yoke/base/rng_testing.h"
#include "yoke/comm/case_buffers_testing.h"
#include "yoke/comm/case_table_testing.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {

// What a backend promises beyond exact sums: NCCL and MPI choose their own order of additions.
enum class CasePromise {
  kAnyOrder,      // the same bits on all ranks
  kRoundingOnce,  // and f16, bf16 are rounded once
  kRankOrder,     // and the order of additions is that of the ranks
};

// Sanitizers slow loops over elements some fifty times; what they look for shows with fewer and smaller cases.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCasesSanitized = true;
#else
inline constexpr bool kCasesSanitized = false;
#endif

struct CaseOptions {
  std::size_t bytes_max = kCasesSanitized ? 64 << 10 : 16 << 20;
  // One case in so many, for backends that take milliseconds a call; without the factors 2, 3, 5.
  std::size_t every = kCasesSanitized ? 7 : 1;
  std::vector<CollectiveKind> kinds{kCaseKinds.begin(), kCaseKinds.end()};
  CasePromise promise = CasePromise::kRankOrder;
  tensor::Stream stream = tensor::Stream::cpu();
  CaseArena* arena = nullptr;  // processor memory where missing
  Seconds deadline{60};        // of each wait
};

class CommunicatorCases {
 public:
  CommunicatorCases(Communicator& comm, const CaseOptions& options)
      : comm_(comm),
        options_(options),
        rank_(comm.rank()),
        ranks_(comm.size()),
        arena_(options.arena != nullptr ? *options.arena : host_),
        // Small sizes are per part: 4 KB and a bit for each rank.
        send_(arena_, std::max(options.bytes_max, static_cast<std::size_t>(ranks_) * 8192)),
        receive_(arena_, std::max(options.bytes_max, static_cast<std::size_t>(ranks_) * 8192)) {}

  std::vector<std::string> run_all() {
    try {
      run_table();
      run_back_to_back();
      run_same_bits_everywhere();
      if (options_.promise >= CasePromise::kRoundingOnce) run_rounding_once();
      if (options_.promise >= CasePromise::kRankOrder) run_rank_order();
      run_groups();
    } catch (const Error& error) {
      fail(fmt::format("{} ({})", error.message(), info(error.code()).name));
    }
    return failures_;
  }

  void run_table() {
    const std::vector<CommunicatorCase> combinations = case_combinations(options_.kinds, ranks_);
    std::uint32_t number = 0;
    for (const CaseSize& size : kCaseSizes) {
      if (size.bytes > options_.bytes_max) continue;
      for (std::size_t i = 0; i < combinations.size(); ++i) {
        if (++number % (size.every * options_.every) != 0) continue;
        CommunicatorCase one = combinations[i];
        if (!is_exact(one)) continue;
        one.count = case_count(size, one.kind, one.type, ranks_);
        one.salt = number * 0x27d4eb2fU;
        run_case(one);
      }
    }
  }

  // Without waiting for any but the last: the order of operations is all that keeps them apart.
  void run_back_to_back() {
    begin("back to back");
    constexpr int kOperations = 200;
    const std::size_t slot = static_cast<std::size_t>(ranks_) * 7 * 4;
    GuardedBuffer send(arena_, slot * kOperations);
    GuardedBuffer receive(arena_, slot * kOperations);
    send.reset(slot * kOperations, 0);
    receive.reset(slot * kOperations, 0);
    std::vector<CommunicatorCase> cases;
    for (int i = 0; i < kOperations; ++i) {
      const auto number = static_cast<std::size_t>(i);
      CommunicatorCase one{.kind = options_.kinds[number * 3 % options_.kinds.size()], .type = tensor::DType::kI32};
      one.op = kCaseOps[number % kCaseOps.size()];
      one.count = 1 + number % 7;
      one.root = i % ranks_;
      one.salt = static_cast<std::uint32_t>(i);
      if (one.kind == CollectiveKind::kSend && ranks_ < 2) one.kind = CollectiveKind::kBarrier;
      cases.push_back(one);
      write_input(send.image(number * slot), one);
    }
    send.upload();
    receive.upload();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (auto operation = operation_of(cases[i])) {
        operation->send = send.device(i * slot);
        operation->receive = receive.device(i * slot);
        comm_.enqueue(*operation, options_.stream);
        if (counts_of(*operation, rank_, ranks_).receive > 0) {
          write_case_result(receive.image(i * slot), cases[i], rank_, ranks_);
        }
      }
    }
    finish();
    expect_as_predicted(send, "what was sent");
    expect_as_predicted(receive, "what was received");
  }

  // Sums whose last bits depend on the order: whatever it is, all ranks must hold what rank 0 holds.
  void run_same_bits_everywhere() {
    for (const tensor::DType type : {tensor::DType::kF32, tensor::DType::kBf16, tensor::DType::kF16}) {
      for (const std::size_t bytes : {1009UL * 4, 65537UL * 4}) {
        if (bytes > options_.bytes_max) continue;
        begin(fmt::format("same bits of {} in {} bytes everywhere", tensor::to_string(type), bytes));
        const std::size_t count = bytes / tensor::size_of(type);
        std::vector<float> values(count);
        Random random(17, static_cast<std::uint64_t>(rank_));
        for (float& value : values) value = static_cast<float>(random.uniform() * 2 - 1);
        const std::vector<std::byte> mine = all_reduce_of(values, type);
        send_.reset(mine.size(), 0);
        std::memcpy(send_.image(0), mine.data(), mine.size());
        send_.upload();
        comm_.enqueue({.kind = CollectiveKind::kBroadcast,
                       .send = send_.device(),
                       .receive = send_.device(),
                       .count = count,
                       .type = type},
                      options_.stream);
        finish();
        expect_as_predicted(send_, "rank 0's sum");
      }
    }
  }

  // From three ranks on, 256 + 1 + 1 in bf16 and 2048 + 1 + 1 in f16 lose both ones if each addition rounds.
  void run_rounding_once() {
    for (const auto& [type, large] :
         {std::pair{tensor::DType::kBf16, 256.0F}, std::pair{tensor::DType::kF16, 2048.0F}}) {
      begin(fmt::format("{} is rounded once", tensor::to_string(type)));
      expect_sum(std::vector<float>(5, rank_ == 0 ? large : 1.0F), type, large + static_cast<float>(ranks_ - 1));
    }
  }

  // 2^25 - 2^25 + 1 + … in the order of ranks keeps every one; in most other orders some are lost.
  void run_rank_order() {
    begin("f32 is added in the order of ranks");
    const float mine = rank_ == 0 ? 0x1p25F : rank_ == 1 ? -0x1p25F : 1.0F;
    expect_sum(std::vector<float>(5, mine), tensor::DType::kF32,
               ranks_ == 1 ? 0x1p25F : static_cast<float>(ranks_ - 2));
  }

  // Evens and odds side by side, then the lower half of each, then all together again.
  void run_groups() {
    if (ranks_ < 2) return;
    begin("groups by split");
    std::vector<int> own;
    for (int r = rank_ % 2; r < ranks_; r += 2) own.push_back(r);
    const std::unique_ptr<Communicator> group = comm_.split(own);
    expect_group(*group, own);
    const std::vector<int> rail{0};
    if (group->rank() == 0) expect_group(*group->split(rail), {rank_});
    std::vector<int> all_but_last;
    for (int r = 0; r + 1 < ranks_; ++r) all_but_last.push_back(r);
    if (rank_ + 1 < ranks_) expect_group(*comm_.split(all_but_last), all_but_last);
    run_case({.kind = CollectiveKind::kAllReduce, .type = tensor::DType::kI32, .count = 11, .salt = 99});
  }

 private:
  // NCCL multiplies by 1/n in the type itself, and in f16 and bf16 that is exact for powers of two only.
  bool is_exact(const CommunicatorCase& one) const {
    const bool is_rail = one.type == tensor::DType::kF16 || one.type == tensor::DType::kBf16;
    const bool divides_exactly = (ranks_ & (ranks_ - 1)) == 0;
    return options_.promise > CasePromise::kAnyOrder || one.op != ReduceOp::kAvg || !is_rail || divides_exactly;
  }

  void begin(std::string name) { name_ = std::move(name); }
  void fail(const std::string& what) {
    failures_.push_back(fmt::format("rank {} of {}: {}: {}", rank_, ranks_, name_, what));
  }
  void finish() { comm_.wait(comm_.record(options_.stream), Deadline::after(options_.deadline)); }
  void expect_as_predicted(GuardedBuffer& buffer, std::string_view which) {
    if (const auto difference = buffer.difference()) fail(fmt::format("{}: {}", which, *difference));
  }

  // What this rank enqueues; nothing where it has no part in the case.
  std::optional<Collective> operation_of(const CommunicatorCase& one) const {
    Collective operation{.kind = one.kind, .count = one.count, .type = one.type, .op = one.op, .root = one.root};
    if (one.kind == CollectiveKind::kSendReceive) {
      operation.root = (rank_ + 1) % ranks_;
      operation.source = (rank_ + ranks_ - 1) % ranks_;
    }
    if (one.kind == CollectiveKind::kSend) {  // from `root` to the next rank
      const int receiver = (one.root + 1) % ranks_;
      if (rank_ != one.root && rank_ != receiver) return std::nullopt;
      if (rank_ == receiver) operation.kind = CollectiveKind::kReceive;
      if (rank_ == one.root) operation.root = receiver;
    }
    return operation;
  }

  void write_input(std::byte* to, const CommunicatorCase& one) const {
    const std::optional<Collective> operation = operation_of(one);
    if (!operation) return;
    write_elements(to, counts_of(*operation, rank_, ranks_).send, one.type,
                   [&](std::size_t i) { return case_input(one, rank_, i, ranks_); });
  }

  void run_case(const CommunicatorCase& one) {
    begin(one.name());
    std::optional<Collective> operation = operation_of(one);
    if (!operation) return;
    const CollectiveCounts counts = counts_of(*operation, rank_, ranks_);
    const std::size_t element = tensor::size_of(one.type);
    const std::size_t off = one.alignment == CaseAlignment::kAligned ? 0 : element;
    const bool in_place = one.placement == CasePlacement::kInPlace;
    const std::size_t own = static_cast<std::size_t>(rank_) * one.count * element;
    GuardedBuffer& received = in_place ? send_ : receive_;
    const std::size_t send_at = in_place && counts.receive > counts.send && counts.send > 0 ? own : 0;
    const std::size_t receive_at = in_place && counts.send > counts.receive && counts.receive > 0 ? own : 0;

    send_.reset((in_place ? std::max(counts.send, counts.receive) : counts.send) * element, off);
    if (!in_place) receive_.reset(counts.receive * element, off);
    write_input(send_.image(send_at), one);
    send_.upload();
    if (!in_place) receive_.upload();
    if (counts.send > 0 || in_place) operation->send = send_.device(send_at);
    if (counts.receive > 0 || in_place) operation->receive = received.device(receive_at);
    comm_.enqueue(*operation, options_.stream);
    finish();
    if (counts.receive > 0) write_case_result(received.image(receive_at), one, rank_, ranks_);
    expect_as_predicted(send_, in_place ? "the buffer" : "what was sent");
    if (!in_place) expect_as_predicted(receive_, "what was received");
  }

  std::vector<std::byte> all_reduce_of(const std::vector<float>& values, tensor::DType type) {
    send_.reset(values.size() * tensor::size_of(type), 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      write_float(send_.image(i * tensor::size_of(type)), values[i], type);
    send_.upload();
    all_reduce(comm_, send_.device(), values.size(), type, ReduceOp::kSum, options_.stream);
    finish();
    std::vector<std::byte> result(values.size() * tensor::size_of(type));
    arena_.read(result.data(), send_.device(), result.size());
    return result;
  }

  void expect_sum(const std::vector<float>& values, tensor::DType type, float sum) {
    std::vector<std::byte> expected(values.size() * tensor::size_of(type));
    for (std::size_t i = 0; i < values.size(); ++i) write_float(&expected[i * tensor::size_of(type)], sum, type);
    if (all_reduce_of(values, type) != expected) fail("another sum");
  }

  static void write_float(std::byte* to, float value, tensor::DType type) {
    const std::uint16_t rail = type == tensor::DType::kF16 ? tensor::to_f16(value).bits : tensor::to_bf16(value).bits;
    if (type == tensor::DType::kF32) return void(std::memcpy(to, &value, sizeof(value)));
    std::memcpy(to, &rail, sizeof(rail));
  }

  void expect_group(Communicator& group, const std::vector<int>& members) {
    if (group.size() != static_cast<int>(members.size()) || members[static_cast<std::size_t>(group.rank())] != rank_) {
      return fail(fmt::format("is rank {} of {}", group.rank(), group.size()));
    }
    CaseOptions fewer = options_;
    fewer.bytes_max = std::min<std::size_t>(options_.bytes_max, 4096);
    fewer.every = options_.every * 17;
    CommunicatorCases cases(group, fewer);
    cases.run_table();
    for (const std::string& failure : cases.failures_) fail(failure);
  }

  Communicator& comm_;
  const CaseOptions options_;
  const int rank_;
  const int ranks_;
  HostArena host_;
  CaseArena& arena_;
  GuardedBuffer send_;
  GuardedBuffer receive_;
  std::string name_;
  std::vector<std::string> failures_;
};

inline std::vector<std::string> run_communicator_cases(Communicator& comm, const CaseOptions& options = {}) {
  return CommunicatorCases(comm, options).run_all();
}

}  // namespace yoke::comm
