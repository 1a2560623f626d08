#include "yoke/comm/direct/group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "yoke/comm/direct/memory_channel.h"
#include "yoke/comm/operation.h"

namespace yoke::direct {
namespace {

constexpr Seconds kFlushTime{2};

}  // namespace

Group::Group(std::shared_ptr<DirectListener> listener, std::shared_ptr<Vitals> vitals, CommunicatorOptions options,
             Deadline deadline)
    : listener_(std::move(listener)),
      vitals_(std::move(vitals)),
      options_(std::move(options)),
      inbox_(std::make_shared<Inbox>(vitals_->membership(), vitals_->rank())) {
  try {
    connect(deadline);
  } catch (const Error& error) {
    vitals_->fail(error);  // whoever is connected already gets to know
    heart_.reset();
    listener_->reception().close(inbox_);
    throw;
  }
}

Group::~Group() { leave(Deadline::after(kFlushTime)); }

void Group::leave(Deadline deadline) {
  if (std::exchange(left_, true)) return;
  {
    const std::lock_guard lock(running_);
    if (!vitals_->failed()) {
      for (TcpChannel* link : links_) link->flush(deadline);
    }
  }
  heart_.reset();
  listener_->reception().close(inbox_);
}

bool Group::has_half(int peer, int half) const {
  const auto link = std::ranges::find(links_, peer, &TcpChannel::peer);
  return link != links_.end() && (*link)->began_with(static_cast<std::size_t>(half));
}

void Group::connect(Deadline deadline) {
  std::vector<PeerConnections> peers =
      assemble(listener_->reception(), inbox_, *vitals_,
               {.half_patience = options_.silence_limit, .while_waiting = options_.while_making}, deadline);
  memory_ = share_memory(*vitals_, peers, deadline);
  make_channels(peers);
  start_heart(peers);
  make_engine();
  run({.kind = CollectiveKind::kBarrier}, deadline);
  if (heart_) heart_->expect_all();
  tune(deadline);
}

void Group::make_channels(std::vector<PeerConnections>& peers) {
  channels_.resize(peers.size());
  for (int rank = 0; rank < vitals_->size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (rank == vitals_->rank()) continue;
    if (vitals_->is_local(rank)) {
      const MemoryChannel::Place place{memory_.region.get(), memory_.place_of(vitals_->rank()), memory_.place_of(rank)};
      Bell& bell = memory_.bells[static_cast<std::size_t>(place.peer)];
      channels_[index] = std::make_unique<MemoryChannel>(*vitals_, rank, place, std::move(bell));
    } else {
      auto link = std::make_unique<TcpChannel>(*vitals_, rank, std::move(peers[index].data), tuning_);
      links_.push_back(link.get());
      channels_[index] = std::move(link);
    }
  }
}

void Group::start_heart(std::vector<PeerConnections>& peers) {
  std::vector<Heart::Path> paths;
  for (int rank = 0; rank < vitals_->size(); ++rank) {
    PeerConnections& peer = peers[static_cast<std::size_t>(rank)];
    if (peer.memory) paths.push_back({rank, Heart::kMemory, std::move(peer.memory)});
    for (std::size_t half = 0; half < peer.heart.size(); ++half) {
      paths.push_back({rank, static_cast<int>(half), std::move(peer.heart[half])});
    }
  }
  if (paths.empty()) return;
  heart_ = std::make_unique<Heart>(
      *vitals_, std::move(paths),
      Heart::Options{
          .silence_limit = options_.silence_limit, .on_path = options_.on_path, .mend = [this] { return mend(); }});
}

void Group::make_engine() {
  const auto cores = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  crowded_ = memory_.ranks.size() > cores;
  std::vector<Channel*> channels;
  for (const auto& channel : channels_) channels.push_back(channel.get());
  std::atomic<std::uint32_t>* sleeping =
      memory_.region ? &memory_.region->sleeping(memory_.place_of(vitals_->rank())) : nullptr;
  engine_ =
      std::make_unique<Engine>(*vitals_, std::move(channels), sleeping,
                               Patience(crowded_ ? Patience::Crowd::kMoreRanksThanCores : Patience::Crowd::kNone));
  algorithms_ = std::make_unique<Algorithms>(*engine_, vitals_->rank(), vitals_->size());
}

bool Group::mend() {
  const std::unique_lock lock(running_, std::try_to_lock);
  if (!lock) return false;  // the operation does it itself, and we look again later
  for (TcpChannel* link : links_) link->mend();
  return std::ranges::none_of(links_, &TcpChannel::sending);
}

MessageHeader Group::next_header(const Collective& operation) {
  MessageHeader header{.kind = static_cast<std::uint8_t>(operation.kind),
                       .type = static_cast<std::uint8_t>(operation.type),
                       .count = operation.count};
  if (is_point_to_point(operation.kind)) {  // of the two sides of a message
    header.kind = static_cast<std::uint8_t>(CollectiveKind::kSend);
    return header;
  }
  header.sequence = static_cast<std::uint32_t>(vitals_->begun.fetch_add(1, std::memory_order_relaxed) + 1);
  if (reduces(operation.kind)) header.op = static_cast<std::uint8_t>(operation.op);
  switch (operation.kind) {
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      header.root = static_cast<std::uint32_t>(operation.root);
      break;
    case CollectiveKind::kBarrier:
      header.type = 0;
      header.count = 0;
      break;
    default:
      break;
  }
  return header;
}

void Group::run(const Collective& operation) { run_until(operation, options_.operation_timeout); }
void Group::run(const Collective& operation, Deadline deadline) { run_until(operation, deadline); }

template <class Limit>
void Group::run_until(const Collective& operation, Limit limit) {
  check_operation(operation, vitals_->rank(), vitals_->size());
  const std::lock_guard lock(running_);
  engine_->begin(next_header(operation), limit);
  try {
    algorithms_->run(operation);
  } catch (const Error& error) {
    vitals_->fail(error);
    throw *vitals_->failure();
  }
  vitals_->finished.store(vitals_->begun.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Of what is connected now, not of what was meant to be.
void Group::describe_links(std::vector<std::string>& parts) const {
  std::vector<std::string> used, missing;
  const std::vector<HalfEndpoint>& endpoints = vitals_->member(vitals_->rank()).endpoints;
  for (std::size_t half = 0; half < endpoints.size(); ++half) {
    std::vector<int> without;
    for (const TcpChannel* link : links_) {
      const bool lost = (vitals_->peer(link->peer()).lost.load() >> half & 1U) != 0;
      if (lost || !link->began_with(half)) without.push_back(link->peer());
    }
    const auto& [name, address, port] = endpoints[half];
    if (without.size() < links_.size()) used.push_back(fmt::format("{} ({})", name, address));
    if (without.empty()) continue;
    const bool all = without.size() == links_.size();
    missing.push_back(
        fmt::format("{}: not connected{}", name, all ? "" : fmt::format(" to rank {}", fmt::join(without, ", "))));
  }
  parts.push_back(fmt::format("tcp over {}", fmt::join(used, " and ")));
  parts.insert(parts.end(), missing.begin(), missing.end());
  if (used.size() > 1 && tuning_.stripe_from != SIZE_MAX) {
    parts.push_back(
        fmt::format("on all halves from {}", to_string(Bytes{static_cast<std::int64_t>(tuning_.stripe_from)})));
  }
}

std::string Group::describe() const {
  std::vector<std::string> parts;
  if (memory_.ranks.size() > 1) parts.push_back(fmt::format("memory among ranks {}", fmt::join(memory_.ranks, ", ")));
  if (!links_.empty()) describe_links(parts);
  if (algorithms_->by_parts_from != SIZE_MAX) {
    parts.push_back(fmt::format("all-reduce by parts from {}",
                                to_string(Bytes{static_cast<std::int64_t>(algorithms_->by_parts_from)})));
  }
  if (parts.empty()) parts.emplace_back("one rank alone");
  return fmt::format("direct: {}", fmt::join(parts, "; "));
}

}  // namespace yoke::direct
