// What all ranks do in one step, as rank 0 decides it and tells the others. The ranks keep the same table of sequences
// by following the same plans. Sequences are known by slots, dense numbers that rank 0 gives at admission: a client's
// request id never leaves rank 0. Rank 0 owns the only book of pages and ships page numbers.
//
// A plan travels as bytes (little-endian): a header of 32, each row 16, then lists of words; requests as wire.h has
// them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/engine/request.h"

namespace yoke::engine {

struct PlanRow {
  std::int32_t slot = 0;
  std::int32_t fresh = 1;             // so many of its tokens that are not in the cache yet
  std::optional<text::TokenId> made;  // the token that was sampled after its last step
  friend bool operator==(const PlanRow&, const PlanRow&) = default;
};

// A sequence enters. Its first `cached` tokens are in pages already, which other sequences share.
struct Admission {
  std::int32_t slot = 0;
  std::int64_t cached = 0;
  Request request;
};

// Pages that a sequence gets at the end of its list.
struct PageGrant {
  std::int32_t slot = 0;
  std::vector<std::int32_t> pages;
  friend bool operator==(const PageGrant&, const PageGrant&) = default;
};

enum class PlanEnd : std::uint8_t {
  kNone,
  kEngine,   // the client is gone: no further step follows
  kAccount,  // after this step all ranks tell rank 0 what their steps were made of
};

struct StepPlan {
  PlanEnd end = PlanEnd::kNone;
  std::vector<std::int32_t> released;  // first
  std::vector<Admission> admitted;     // then
  std::vector<PageGrant> grants;       // then
  std::vector<PlanRow> rows;           // and what is computed; may be nothing
};

std::string encode(const StepPlan& plan);
StepPlan decode_plan(std::string_view bytes);  // Error(kInvalid) where it is none

// From rank 0 to all: rank 0 gives its plan, the others get it. The first message has room for what recent plans
// needed, so that a plan of decoding is one message however many rows it has.
class PlanSharing {
 public:
  StepPlan share(comm::Communicator& control, std::optional<StepPlan> own);
  int messages() const { return messages_; }  // of the last plan

 private:
  static constexpr std::size_t kMinFirst = 1024;
  std::size_t first_ = kMinFirst;  // the same on all ranks, as all know the sizes of all plans
  std::string buffer_;
  int messages_ = 0;
};

}  // namespace yoke::engine
