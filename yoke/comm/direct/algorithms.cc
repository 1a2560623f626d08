#include "yoke/comm/direct/algorithms.h"

#include <algorithm>
#include <cstring>

#include "yoke/comm/operation.h"
#include "yoke/comm/reduce.h"

namespace yoke::comm::direct {
namespace {

const std::byte* sent_by(const Collective& operation) { return static_cast<const std::byte*>(operation.send); }
std::byte* received_by(const Collective& operation) { return static_cast<std::byte*>(operation.receive); }
std::size_t bytes_of_one(const Collective& operation) { return operation.count * tensor::size_of(operation.type); }

void copy(std::byte* to, const std::byte* from, std::size_t size) {
  if (size > 0 && to != from) std::memcpy(to, from, size);
}

struct Slice {
  std::size_t begin = 0, size = 0;  // bytes
};
// Of `count` elements the share of one rank.
Slice share(const Collective& operation, int rank, int ranks) {
  const std::size_t element = tensor::size_of(operation.type), each = operation.count / static_cast<std::size_t>(ranks);
  const std::size_t more = operation.count % static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  const std::size_t begin = r * each + std::min(r, more);
  return {begin * element, (each + (r < more ? 1 : 0)) * element};
}

}  // namespace

Algorithms::Algorithms(Engine& engine, int rank, int ranks)
    : engine_(engine), rank_(rank), ranks_(ranks), inputs_(static_cast<std::size_t>(ranks)) {}

void Algorithms::run(const Collective& operation) {
  switch (operation.kind) {
    case CollectiveKind::kAllReduce: {
      const bool parts = ranks_ > 2 && bytes_of_one(operation) >= by_parts_from;
      return all_reduce(operation, parts ? AllReduceWay::kByParts : AllReduceWay::kOneShot);
    }
    case CollectiveKind::kAllGather:
      return all_gather(operation);
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(operation);
    case CollectiveKind::kBroadcast:
      return broadcast(operation);
    case CollectiveKind::kReduce:
      return reduce(operation);
    case CollectiveKind::kGather:
      return gather(operation);
    case CollectiveKind::kScatter:
      return scatter(operation);
    case CollectiveKind::kAllToAll:
      return all_to_all(operation);
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kSendReceive:
      return point_to_point(operation);
    case CollectiveKind::kBarrier:
      return barrier();
  }
}

void Algorithms::combine(const Collective& operation, const std::byte* own, std::byte* out, std::size_t size,
                         Overwrites what) {
  const std::size_t element = tensor::size_of(operation.type);
  std::size_t done = 0;
  engine_.run([&] {
    const std::size_t before = done;
    while (done < size) {
      std::size_t piece = size - done;
      for_peers([&](int peer) {
        Channel& channel = engine_.channel(peer);
        const std::span<const std::byte> window = channel.window();
        piece = std::min(piece, window.size());
        if (what == Overwrites::kWhatIsBeingSent)
          piece = std::min(piece, channel.sent() - std::min(channel.sent(), done));
        inputs_[static_cast<std::size_t>(peer)] = window.data();
      });
      piece -= piece % element;
      if (piece == 0) break;
      inputs_[static_cast<std::size_t>(rank_)] = own + done;
      reduce_into(out + done, inputs_, piece / element, operation.type, operation.op);
      for_peers([&](int peer) { engine_.channel(peer).consume(piece); });
      done += piece;
    }
    return done > before;
  });
}

void Algorithms::all_reduce(const Collective& operation, AllReduceWay way) {
  if (ranks_ == 1) {
    inputs_[0] = operation.send;
    return reduce_into(operation.receive, inputs_, operation.count, operation.type, operation.op);
  }
  way == AllReduceWay::kOneShot ? all_reduce_one_shot(operation) : all_reduce_by_parts(operation);
}

void Algorithms::all_reduce_one_shot(const Collective& operation) {
  const std::size_t size = bytes_of_one(operation);
  for_peers([&](int peer) { engine_.send(peer, 0, sent_by(operation), size); });
  for_peers([&](int peer) { engine_.receive(peer, 0, nullptr, size); });
  const bool in_place = operation.send == operation.receive;
  combine(operation, sent_by(operation), received_by(operation), size,
          in_place ? Overwrites::kWhatIsBeingSent : Overwrites::kNothingUnsent);
}

void Algorithms::all_reduce_by_parts(const Collective& operation) {
  const Slice own = share(operation, rank_, ranks_);
  for_peers([&](int peer) {
    const Slice theirs = share(operation, peer, ranks_);
    engine_.send(peer, 0, sent_by(operation) + theirs.begin, theirs.size);
  });
  for_peers([&](int peer) { engine_.receive(peer, 0, nullptr, own.size); });
  combine(operation, sent_by(operation) + own.begin, received_by(operation) + own.begin, own.size,
          Overwrites::kNothingUnsent);
  for_peers([&](int peer) { engine_.send(peer, 1, received_by(operation) + own.begin, own.size); });
  for_peers([&](int peer) {
    const Slice theirs = share(operation, peer, ranks_);
    engine_.receive(peer, 1, received_by(operation) + theirs.begin, theirs.size);
  });
  engine_.run();
}

void Algorithms::all_gather(const Collective& operation) {
  const std::size_t part = bytes_of_one(operation);
  const auto place = [&](int rank) { return received_by(operation) + static_cast<std::size_t>(rank) * part; };
  for_peers([&](int peer) { engine_.send(peer, 0, sent_by(operation), part); });
  for_peers([&](int peer) { engine_.receive(peer, 0, place(peer), part); });
  copy(place(rank_), sent_by(operation), part);
  engine_.run();
}

void Algorithms::reduce_scatter(const Collective& operation) {
  const std::size_t part = bytes_of_one(operation);
  const auto place = [&](int rank) { return sent_by(operation) + static_cast<std::size_t>(rank) * part; };
  if (ranks_ == 1) return all_reduce(operation, AllReduceWay::kOneShot);
  for_peers([&](int peer) { engine_.send(peer, 0, place(peer), part); });
  for_peers([&](int peer) { engine_.receive(peer, 0, nullptr, part); });
  combine(operation, place(rank_), received_by(operation), part, Overwrites::kNothingUnsent);
}

void Algorithms::broadcast(const Collective& operation) {
  const std::size_t size = bytes_of_one(operation);
  if (rank_ != operation.root) {
    engine_.receive(operation.root, 0, received_by(operation), size);
  } else {
    for_peers([&](int peer) { engine_.send(peer, 0, sent_by(operation), size); });
    copy(received_by(operation), sent_by(operation), size);
  }
  engine_.run();
}

void Algorithms::reduce(const Collective& operation) {
  if (ranks_ == 1) return all_reduce(operation, AllReduceWay::kOneShot);
  const std::size_t size = bytes_of_one(operation);
  if (rank_ != operation.root) {
    engine_.send(operation.root, 0, sent_by(operation), size);
    return engine_.run();
  }
  for_peers([&](int peer) { engine_.receive(peer, 0, nullptr, size); });
  combine(operation, sent_by(operation), received_by(operation), size, Overwrites::kNothingUnsent);
}

void Algorithms::gather(const Collective& operation) {
  const std::size_t part = bytes_of_one(operation);
  const auto place = [&](int rank) { return received_by(operation) + static_cast<std::size_t>(rank) * part; };
  if (rank_ != operation.root) {
    engine_.send(operation.root, 0, sent_by(operation), part);
  } else {
    for_peers([&](int peer) { engine_.receive(peer, 0, place(peer), part); });
    copy(place(rank_), sent_by(operation), part);
  }
  engine_.run();
}

void Algorithms::scatter(const Collective& operation) {
  const std::size_t part = bytes_of_one(operation);
  const auto place = [&](int rank) { return sent_by(operation) + static_cast<std::size_t>(rank) * part; };
  if (rank_ != operation.root) {
    engine_.receive(operation.root, 0, received_by(operation), part);
  } else {
    for_peers([&](int peer) { engine_.send(peer, 0, place(peer), part); });
    copy(received_by(operation), place(rank_), part);
  }
  engine_.run();
}

void Algorithms::all_to_all(const Collective& operation) {
  const std::size_t part = bytes_of_one(operation);
  const auto at = [&](int rank) { return static_cast<std::size_t>(rank) * part; };
  for_peers([&](int peer) { engine_.send(peer, 0, sent_by(operation) + at(peer), part); });
  for_peers([&](int peer) { engine_.receive(peer, 0, received_by(operation) + at(peer), part); });
  copy(received_by(operation) + at(rank_), sent_by(operation) + at(rank_), part);
  engine_.run();
}

void Algorithms::point_to_point(const Collective& operation) {
  const std::size_t size = bytes_of_one(operation);
  const bool sends = operation.kind != CollectiveKind::kReceive;
  const bool receives = operation.kind != CollectiveKind::kSend;
  const int source = operation.kind == CollectiveKind::kReceive ? operation.root : operation.source;
  const bool to_itself = sends && operation.root == rank_, from_itself = receives && source == rank_;
  if (to_itself != from_itself) {
    throw Error(ErrorCode::kInvalid, signature(operation) + ": a rank can talk to itself only in one send-receive");
  }
  if (to_itself) return copy(received_by(operation), sent_by(operation), size);
  if (sends) engine_.send(operation.root, 0, sent_by(operation), size);
  if (receives) engine_.receive(source, 0, received_by(operation), size);
  engine_.run();
}

void Algorithms::barrier() {
  for_peers([&](int peer) { engine_.send(peer, 0, nullptr, 0); });
  for_peers([&](int peer) { engine_.receive(peer, 0, nullptr, 0); });
  engine_.run();
}

}  // namespace yoke::comm::direct
