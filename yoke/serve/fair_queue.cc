#include "yoke/serve/fair_queue.h"

#include <tuple>

#include "yoke/base/check.h"

namespace yoke::serve {

bool FairQueue::has_room(const std::string& client, std::size_t count) const {
  const auto all = static_cast<std::size_t>(places_) + static_cast<std::size_t>(waiting_max_);
  if (clients_of_.size() + count > all) return false;
  const auto found = clients_.find(client);
  const std::size_t has = found == clients_.end() ? 0 : found->second.places + found->second.waiting.size();
  return has + count <= all - static_cast<std::size_t>(waiting_max_) / 8;
}

void FairQueue::add(const std::string& client, std::uint64_t id) {
  const bool is_new = clients_of_.emplace(id, client).second;
  YOKE_CHECK(is_new, "request {} is there already", id);
  clients_[client].waiting.insert(id);
}

std::optional<std::uint64_t> FairQueue::next() {
  if (running_ >= static_cast<std::size_t>(places_)) return std::nullopt;
  Client* chosen = nullptr;
  for (auto& [name, client] : clients_) {
    if (client.waiting.empty()) continue;
    const auto rank_of = [](const Client& one) { return std::tuple(one.places, *one.waiting.begin()); };
    if (!chosen || rank_of(client) < rank_of(*chosen)) chosen = &client;
  }
  if (!chosen) return std::nullopt;
  const std::uint64_t id = *chosen->waiting.begin();
  chosen->waiting.erase(chosen->waiting.begin());
  ++chosen->places;
  ++running_;
  return id;
}

void FairQueue::remove(std::uint64_t id) {
  const auto of = clients_of_.find(id);
  if (of == clients_of_.end()) return;
  const auto found = clients_.find(of->second);
  Client& client = found->second;
  if (client.waiting.erase(id) == 0) {
    --client.places;
    --running_;
  }
  if (client.places == 0 && client.waiting.empty()) clients_.erase(found);
  clients_of_.erase(of);
}

}  // namespace yoke::serve
