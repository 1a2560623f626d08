#include "yoke/watch/page_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "yoke/base/json.h"
#include "yoke/http/page.h"
#include "yoke/http/server.h"
#include "yoke/watch/watch_text.h"

namespace yoke::watch {
namespace {

constexpr std::size_t kMaxHistoryRows = 600;
constexpr std::size_t kMaxWatchers = 256;

constexpr http::PageFile kWatchPageFiles[] = {
    {"/", "yoke/watch/page/index.html", "text/html; charset=utf-8"},
    {"/watch.js", "yoke/watch/page/watch.js", "text/javascript; charset=utf-8"},
    {"/watch.css", "yoke/watch/page/watch.css", "text/css; charset=utf-8"},
};

std::string sse_event(std::string_view name, const Document& data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, print_json(data, JsonLayout::kOneLine));
}

}  // namespace

struct PageServer::State {
  std::mutex mutex;
  std::string metrics, board;                           // as last published
  std::string cables;                                   // the same all the time
  std::vector<std::shared_ptr<http::Exchange>> opened;  // want the history first
  std::vector<std::shared_ptr<http::Exchange>> watching;
  Exposed exposed = Exposed::kAll;
  bool is_loopback_only = false;
  std::unique_ptr<http::Server> server;

  void handle(const std::shared_ptr<http::Exchange>& exchange) {
    const http::HttpRequest& request = exchange->request();
    if (request.method != "GET" && request.method != "HEAD") {
      return exchange->respond({.status = 405, .body = http::plain_error_json("only GET", "invalid_request_error")});
    }
    if (request.path == "/metrics") {
      const std::lock_guard lock(mutex);
      return exchange->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics});
    }
    // What runs on the nodes, and who runs it, is for those who look here, not for the pages of other sites.
    if (is_loopback_only && !http::is_local_host(request.header("host").value_or("localhost"))) {
      return exchange->respond(
          {.status = 403,
           .body = http::plain_error_json("this page is for this machine only: ask for it as 'localhost', or let it "
                                          "listen on another address (--listen)",
                                          "host_not_allowed")});
    }
    if (request.path == "/board.json") {
      const std::lock_guard lock(mutex);
      return exchange->respond({.headers = {{"Cache-Control", "no-cache"}}, .body = board});
    }
    if (request.path == "/cables.json") {
      const std::lock_guard lock(mutex);
      return exchange->respond({.body = cables});
    }
    if (request.path == "/events") return watch(exchange);
    if (const auto page = http::page_reply(kWatchPageFiles, request.path)) {
      exchange->add_header("X-Content-Type-Options", "nosniff");
      return exchange->respond(*page);
    }
    exchange->respond({.status = 404, .body = http::plain_error_json("there is no such page", "not_found_error")});
  }

  void watch(const std::shared_ptr<http::Exchange>& exchange) {
    const std::lock_guard lock(mutex);
    if (opened.size() + watching.size() >= kMaxWatchers) {
      return exchange->respond({.status = 503, .body = http::plain_error_json("too many watch already", "overloaded")});
    }
    exchange->start_stream({.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}});
    opened.push_back(exchange);
  }
};

PageServer::PageServer(const Endpoint& listen, Exposed exposed) : state_(std::make_shared<State>()) {
  state_->exposed = exposed;
  state_->is_loopback_only = http::is_local_host(listen.address);
  state_->server = std::make_unique<http::Server>(
      http::ServerOptions{.listen = listen, .connections_max = 1024},
      [state = state_.get()](const std::shared_ptr<http::Exchange>& exchange) { state->handle(exchange); });
}

PageServer::~PageServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->opened.clear();
    state_->watching.clear();
  }
  state_->server.reset();
}

Endpoint PageServer::local() const { return state_->server->local(); }

std::size_t PageServer::watchers() const {
  const std::lock_guard lock(state_->mutex);
  const auto count = [](const auto& list) {
    return static_cast<std::size_t>(
        std::ranges::count_if(list, [](const auto& exchange) { return !exchange->is_over(); }));
  };
  return count(state_->opened) + count(state_->watching);
}

void PageServer::publish(const Board& board) {
  const Document now = board_json(board);
  std::string text = print_json(now, JsonLayout::kOneLine);
  std::string metrics = exposition(board, state_->exposed);
  const std::lock_guard lock(state_->mutex);
  const std::string event = fmt::format("event: board\ndata: {}\n\n", text);
  state_->board = std::move(text);
  state_->metrics = std::move(metrics);
  if (state_->cables.empty()) state_->cables = print_json(cables_json(board.plan().cluster), JsonLayout::kOneLine);
  if (!state_->opened.empty()) {
    const std::string history = sse_event("history", history_json(board));
    for (const auto& exchange : state_->opened) exchange->write(history);
    state_->watching.insert(state_->watching.end(), state_->opened.begin(), state_->opened.end());
    state_->opened.clear();
  }
  // One who does not read is cut off by the server.
  std::erase_if(state_->watching, [](const auto& exchange) { return exchange->is_over(); });
  for (const auto& exchange : state_->watching) exchange->write(event);
}

Document history_json(const Board& board) {
  Document nodes = Document::list();
  for (const BoardNode& node : board.nodes()) {
    const std::size_t rows = node.history.times().size();
    const std::size_t step = std::max<std::size_t>(1, (rows + kMaxHistoryRows - 1) / kMaxHistoryRows);
    const auto thin = [&](const auto& values) {
      Document list = Document::list();
      for (std::size_t i = (rows + step - 1) % step; i < values.size(); i += step) {
        // Four digits are more than a plot can show.
        const auto value = static_cast<double>(values[i]);
        list.items.push_back(
            Document::number(std::abs(value) < 1e7 ? std::round(value * 100) / 100 : std::round(value)));
      }
      return list;
    };
    Document series = Document::map();
    for (const auto& [name, values] : node.history.series()) series.add(name, thin(values));
    nodes.items.push_back(Document::map(
        {{"node", Document::string(node.name)}, {"times", thin(node.history.times())}, {"series", std::move(series)}}));
  }
  return Document::map({{"cluster", Document::string(board.plan().cluster.name)},
                        {"interval", Document::number(board.plan().interval.value)},
                        {"nodes", std::move(nodes)}});
}

Document cables_json(const spec::Cluster& cluster) {
  Document cables = Document::list();
  const auto add = [&](const spec::ClusterNode& a, const spec::Rail& at_a, const spec::ClusterNode& b,
                       const spec::Rail& at_b) {
    cables.items.push_back(Document::map({{"a", Document::string(a.name)},
                                          {"b", Document::string(b.name)},
                                          {"a_interface", Document::string(at_a.interface)},
                                          {"b_interface", Document::string(at_b.interface)}}));
  };
  const bool switched = cluster.fabric && cluster.fabric->topology == spec::Topology::kSwitch;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    for (const spec::Rail& rail : cluster.nodes[i].rails) {
      for (std::size_t j = i + 1; !switched && j < cluster.nodes.size(); ++j) {
        for (const spec::Rail& other : cluster.nodes[j].rails) {
          if (rail.address.contains(other.address.address)) add(cluster.nodes[i], rail, cluster.nodes[j], other);
        }
      }
      if (switched) {
        cables.items.push_back(Document::map({{"a", Document::string(cluster.nodes[i].name)},
                                              {"b", Document::string("switch")},
                                              {"a_interface", Document::string(rail.interface)}}));
      }
    }
  }
  return cables;
}

}  // namespace yoke::watch
