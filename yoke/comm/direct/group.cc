#include "yoke/comm/direct/group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/processor_share.h"
#include "yoke/comm/direct/memory_channel.h"
#include "yoke/comm/operation.h"

namespace yoke::comm::direct {
namespace {

constexpr Seconds kFlushTime{2};

}  // namespace

Group::Group(std::shared_ptr<DirectListener> listener, std::shared_ptr<Health> health, CommunicatorOptions options,
             Deadline deadline)
    : listener_(std::move(listener)),
      health_(std::move(health)),
      options_(std::move(options)),
      inbox_(std::make_shared<Inbox>(health_->membership(), health_->rank())) {
  try {
    connect(deadline);
  } catch (const Error& error) {
    health_->fail(error);  // the one that is connected already gets to know
    heartbeat_.reset();
    listener_->acceptor().close(inbox_);
    throw;
  }
}

Group::~Group() { leave(Deadline::after(kFlushTime)); }

void Group::leave(Deadline deadline) {
  if (std::exchange(left_, true)) return;
  {
    const std::lock_guard lock(running_);
    if (!health_->failed()) {
      for (TcpChannel* link : links_) link->flush(deadline);
    }
  }
  heartbeat_.reset();
  listener_->acceptor().close(inbox_);
}

bool Group::has_rail(int peer, int rail) const {
  const auto link = std::ranges::find(links_, peer, &TcpChannel::peer);
  return link != links_.end() && (*link)->began_with(static_cast<std::size_t>(rail));
}

void Group::connect(Deadline deadline) {
  std::vector<PeerConnections> peers =
      assemble(listener_->acceptor(), inbox_, *health_,
               {.half_patience = options_.silence_limit, .while_waiting = options_.while_making}, deadline);
  memory_ = share_memory(*health_, peers, deadline);
  make_channels(peers);
  start_heartbeat(peers);
  make_engine();
  run({.kind = CollectiveKind::kBarrier}, deadline);
  if (heartbeat_) heartbeat_->expect_all();
  tune(deadline);
}

void Group::make_channels(std::vector<PeerConnections>& peers) {
  channels_.resize(peers.size());
  for (int rank = 0; rank < health_->size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (rank == health_->rank()) continue;
    if (health_->is_local(rank)) {
      const MemoryChannel::Place place{memory_.region.get(), memory_.place_of(health_->rank()), memory_.place_of(rank)};
      Wakeup& wakeup = memory_.wakeups[static_cast<std::size_t>(place.peer)];
      channels_[index] = std::make_unique<MemoryChannel>(*health_, rank, place, std::move(wakeup));
    } else {
      auto link = std::make_unique<TcpChannel>(*health_, rank, std::move(peers[index].data), tuning_);
      links_.push_back(link.get());
      channels_[index] = std::move(link);
    }
  }
}

void Group::start_heartbeat(std::vector<PeerConnections>& peers) {
  std::vector<Heartbeat::Path> paths;
  for (int rank = 0; rank < health_->size(); ++rank) {
    PeerConnections& peer = peers[static_cast<std::size_t>(rank)];
    if (peer.memory) paths.push_back({rank, Heartbeat::kMemory, std::move(peer.memory)});
    for (std::size_t rail = 0; rail < peer.heartbeat.size(); ++rail) {
      paths.push_back({rank, static_cast<int>(rail), std::move(peer.heartbeat[rail])});
    }
  }
  if (paths.empty()) return;
  heartbeat_ = std::make_unique<Heartbeat>(
      *health_, std::move(paths),
      Heartbeat::Options{
          .silence_limit = options_.silence_limit, .on_path = options_.on_path, .mend = [this] { return mend(); }});
}

void Group::make_engine() {
  crowded_ = static_cast<double>(memory_.ranks.size()) > processor_share(DiskTree("/"));
  std::vector<Channel*> channels;
  for (const auto& channel : channels_) channels.push_back(channel.get());
  std::atomic<std::uint32_t>* sleeping =
      memory_.region ? &memory_.region->sleeping(memory_.place_of(health_->rank())) : nullptr;
  engine_ = std::make_unique<Engine>(
      *health_, std::move(channels), sleeping,
      SpinPolicy(crowded_ ? SpinPolicy::CoreSharing::kMoreThanCores : SpinPolicy::CoreSharing::kNone));
  algorithms_ = std::make_unique<Algorithms>(*engine_, health_->rank(), health_->size());
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
  header.sequence = static_cast<std::uint32_t>(health_->begun.fetch_add(1, std::memory_order_relaxed) + 1);
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
  check_operation(operation, health_->rank(), health_->size());
  const std::lock_guard lock(running_);
  engine_->begin(next_header(operation), limit);
  try {
    algorithms_->run(operation);
  } catch (const Error& error) {
    health_->fail(error);
    throw *health_->failure();
  }
  health_->finished.store(health_->begun.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Of what is connected now, not of what was meant to be.
void Group::describe_links(std::vector<std::string>& parts) const {
  std::vector<std::string> used, missing;
  const std::vector<spec::RailEndpoint>& endpoints = health_->member(health_->rank()).endpoints;
  for (std::size_t rail = 0; rail < endpoints.size(); ++rail) {
    std::vector<int> without;
    for (const TcpChannel* link : links_) {
      const bool lost = (health_->peer(link->peer()).lost.load() >> rail & 1U) != 0;
      if (lost || !link->began_with(rail)) without.push_back(link->peer());
    }
    const auto& [name, address, port] = endpoints[rail];
    if (without.size() < links_.size()) used.push_back(fmt::format("{} ({})", name, address));
    if (without.empty()) continue;
    const bool all = without.size() == links_.size();
    missing.push_back(
        fmt::format("{}: not connected{}", name, all ? "" : fmt::format(" to rank {}", fmt::join(without, ", "))));
  }
  parts.push_back(used.size() > 2 ? fmt::format("tcp over {} rails, {} to {}", used.size(), used.front(), used.back())
                                  : fmt::format("tcp over {}", fmt::join(used, " and ")));
  parts.insert(parts.end(), missing.begin(), missing.end());
  if (used.size() > 1 && tuning_.stripe_from != SIZE_MAX) {
    parts.push_back(
        fmt::format("on all rails from {}", yoke::to_string(Bytes{static_cast<std::int64_t>(tuning_.stripe_from)})));
  }
}

std::string Group::describe() const {
  std::vector<std::string> parts;
  if (memory_.ranks.size() > 1) parts.push_back(fmt::format("memory among ranks {}", fmt::join(memory_.ranks, ", ")));
  if (!links_.empty()) describe_links(parts);
  if (algorithms_->by_parts_from != SIZE_MAX) {
    parts.push_back(fmt::format("all-reduce by parts from {}",
                                yoke::to_string(Bytes{static_cast<std::int64_t>(algorithms_->by_parts_from)})));
  }
  if (parts.empty()) parts.emplace_back("one rank alone");
  return fmt::format("direct: {}", fmt::join(parts, "; "));
}

}  // namespace yoke::comm::direct
