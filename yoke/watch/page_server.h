// The page of a watch: the board as HTML with live plots (server-sent events), its JSON, and /metrics for Prometheus.
// Everything comes from the program itself; nothing of the page may load or send anything elsewhere.
//
//   PageServer page({"127.0.0.1", 9545}, Exposed::kAll);
//   page.publish(board);                     // after each sample
//
// publish() is for one thread; the server's threads read what it left.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "yoke/base/socket.h"
#include "yoke/watch/board.h"
#include "yoke/watch/exposition.h"

namespace yoke::watch {

class PageServer {
 public:
  // Throws Error(kConflict) where somebody listens there.
  PageServer(const Endpoint& listen, Exposed exposed);
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;
  ~PageServer();

  Endpoint local() const;
  void publish(const Board& board);
  std::size_t watchers() const;  // who gets events now

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Of all nodes, for a page that has just been opened: at most 600 rows, older ones thinned out.
Document history_json(const Board& board);
// Who is cabled to whom, by the cluster file: [{"a", "b", "a_interface", "b_interface"}].
Document cables_json(const spec::Cluster& cluster);

}  // namespace yoke::watch
