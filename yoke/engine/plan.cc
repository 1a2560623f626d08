#include "yoke/engine/plan.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/check.h"
#include "yoke/engine/wire.h"

namespace yoke::engine {
namespace {

constexpr std::uint32_t kPlanMagic = 0x314e4c50;  // "PLN1"
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kRowBytes = 16;
constexpr std::uint32_t kHasMade = 1;

}  // namespace

std::string encode(const StepPlan& plan) {
  std::string bytes;
  bytes.reserve(kHeaderBytes + kRowBytes * plan.rows.size() + 256);
  WireWriter writer(bytes);
  writer.put(kPlanMagic);
  writer.put(static_cast<std::uint32_t>(plan.end));
  writer.put(static_cast<std::uint32_t>(plan.released.size()));
  writer.put(static_cast<std::uint32_t>(plan.admitted.size()));
  writer.put(static_cast<std::uint32_t>(plan.grants.size()));
  writer.put(static_cast<std::uint32_t>(plan.rows.size()));
  writer.put(std::uint64_t{0});  // for later
  for (const PlanRow& row : plan.rows) {
    writer.put(row.slot);
    writer.put(row.fresh);
    writer.put(row.made.value_or(0));
    writer.put(row.made ? kHasMade : 0U);
  }
  for (const std::int32_t slot : plan.released) writer.put(slot);
  for (const PageGrant& grant : plan.grants) {
    writer.put(grant.slot);
    writer.put_list(std::span<const std::int32_t>(grant.pages));
  }
  for (const Admission& one : plan.admitted) {
    writer.put(one.slot);
    writer.put(one.cached);
    put_request(writer, one.request);
  }
  return bytes;
}

StepPlan decode_plan(std::string_view bytes) {
  WireReader reader(bytes, "a plan");
  StepPlan plan;
  if (reader.get<std::uint32_t>() != kPlanMagic) reader.refuse("is of another version");
  const auto end = reader.get<std::uint32_t>();
  if (end > static_cast<std::uint32_t>(PlanEnd::kAccount)) reader.refuse("ends in an unknown way");
  plan.end = static_cast<PlanEnd>(end);
  const auto released = reader.get<std::uint32_t>();
  const auto admitted = reader.get<std::uint32_t>();
  const auto grants = reader.get<std::uint32_t>();
  const auto rows = reader.get<std::uint32_t>();
  if (reader.get<std::uint64_t>() != 0) reader.refuse("has a field that this version does not know");
  // Counts take no memory before the bytes for them are seen: each list below ends where the bytes do.
  for (std::uint32_t i = 0; i < rows; ++i) {
    PlanRow& row = plan.rows.emplace_back();
    row.slot = reader.get<std::int32_t>();
    row.fresh = reader.get<std::int32_t>();
    const auto made = reader.get<std::int32_t>();
    const auto flags = reader.get<std::uint32_t>();
    if (flags > kHasMade || (flags == 0 && made != 0)) reader.refuse("has a row of unknown flags");
    if (flags == kHasMade) row.made = made;
    if (row.slot < 0 || row.fresh < 1) reader.refuse("has a row of nothing");
  }
  for (std::uint32_t i = 0; i < released; ++i) plan.released.push_back(reader.get<std::int32_t>());
  for (std::uint32_t i = 0; i < grants; ++i) {
    PageGrant& grant = plan.grants.emplace_back();
    grant.slot = reader.get<std::int32_t>();
    grant.pages = reader.get_list<std::int32_t>();
  }
  for (std::uint32_t i = 0; i < admitted; ++i) {
    Admission& one = plan.admitted.emplace_back();
    one.slot = reader.get<std::int32_t>();
    one.cached = reader.get<std::int64_t>();
    one.request = get_request(reader);
  }
  reader.expect_end();
  return plan;
}

StepPlan PlanSharing::share(comm::Communicator& control, std::optional<StepPlan> own) {
  YOKE_CHECK_EQ(own.has_value(), control.rank() == 0);
  messages_ = 0;
  if (control.size() == 1) return std::move(*own);
  using Length = std::uint32_t;
  std::string bytes = own ? encode(*own) : std::string();
  buffer_.assign(first_, '\0');
  const std::size_t room = first_ - sizeof(Length);
  if (own) {
    YOKE_CHECK_LE(bytes.size(), std::numeric_limits<Length>::max());
    const auto length = static_cast<Length>(bytes.size());
    std::memcpy(buffer_.data(), &length, sizeof length);
    std::memcpy(buffer_.data() + sizeof length, bytes.data(), std::min(bytes.size(), room));
  }
  comm::broadcast(control, buffer_.data(), buffer_.size(), tensor::DType::kI8, 0);
  messages_ = 1;
  Length length = 0;
  std::memcpy(&length, buffer_.data(), sizeof length);
  if (length > room) {
    bytes.resize(length);
    comm::broadcast(control, bytes.data(), bytes.size(), tensor::DType::kI8, 0);
    messages_ = 2;
  }
  // A long prompt comes once: only what is needed again and again makes the first message longer.
  constexpr std::size_t kMaxFirst = 16384;
  if (length > room && length <= kMaxFirst) first_ = std::min(kMaxFirst, 2 * (length + sizeof length));
  if (own) return std::move(*own);
  return decode_plan(messages_ == 2 ? std::string_view(bytes)
                                    : std::string_view(buffer_).substr(sizeof length, length));
}

}  // namespace yoke::engine
