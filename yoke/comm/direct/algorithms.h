// How each operation is made of messages. Reductions always combine everybody's values at once, in the order of ranks,
// so the bits depend neither on the algorithm nor on who came first. Two ranks exchange directly; more either send
// everything to everybody (one-shot, for short messages) or each reduces its part and hands it round.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/comm/direct/engine.h"

namespace yoke::comm::direct {

enum class AllReduceWay { kOneShot, kByParts };

class Algorithms {
 public:
  Algorithms(Engine& engine, int rank, int ranks);

  void run(const Collective& operation);
  void all_reduce(const Collective& operation, AllReduceWay way);

  std::size_t by_parts_from = SIZE_MAX;  // bytes, with more than two ranks

 private:
  enum class Overwrites { kNothingUnsent, kWhatIsBeingSent };

  void all_reduce_one_shot(const Collective& operation);
  void all_reduce_by_parts(const Collective& operation);
  void all_gather(const Collective& operation);
  void reduce_scatter(const Collective& operation);
  void broadcast(const Collective& operation);
  void reduce(const Collective& operation);
  void gather(const Collective& operation);
  void scatter(const Collective& operation);
  void all_to_all(const Collective& operation);
  void point_to_point(const Collective& operation);
  void barrier();

  // Combines what the peers send (expected already) with `own`, as it comes.
  void combine(const Collective& operation, const std::byte* own, std::byte* out, std::size_t size, Overwrites what);
  template <class Function>
  void for_peers(Function&& function) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) function(peer);
    }
  }

  Engine& engine_;
  const int rank_, ranks_;
  std::vector<const void*> inputs_;
};

}  // namespace yoke::comm::direct
