#include "yoke/watch/node_streams.h"

#include <time.h>

#include <algorithm>

#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/probe/probe.h"
#include "yoke/watch/sampler.h"

namespace yoke::watch {
namespace {

using namespace literals;

constexpr Seconds kFactsLimit{20};
constexpr Seconds kTryAgain{1};
constexpr std::size_t kMaxQueue = 65'536;  // a head that is stopped for long loses the oldest

double wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

bool asks_for_login(const Error& error) { return error.code() == ErrorCode::kPermission; }

// Beyond this a stream is taken for dead and opened again.
Seconds longest_silence(Seconds interval) { return std::max(5_s, 4.0 * interval); }

}  // namespace

NodeStreams::NodeStreams(const WatchPlan& plan, StreamOptions options)
    : plan_(plan), options_(std::move(options)), began_at_(wall_clock()), began_(real_clock().now()) {
  for (std::size_t place = 0; place < plan_.cluster.nodes.size(); ++place) {
    threads_.emplace_back([this, place] { follow(place); });
  }
}

NodeStreams::~NodeStreams() {
  end_ = true;
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// By the monotonic clock: a wall clock that is set meanwhile does not disturb.
double NodeStreams::now() const { return began_at_ + to_seconds(real_clock().now() - began_).value; }

void NodeStreams::add(Observation observation) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kMaxQueue) queue_.pop_front();
    queue_.push_back(std::move(observation));
  }
  changed_.notify_all();
}

std::optional<Observation> NodeStreams::next(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (queue_.empty()) {
    if (deadline.expired() || interrupt_signal() != 0) return std::nullopt;
    changed_.wait_for(lock, to_chrono(std::min(deadline.remaining(), 0.1_s)));
  }
  Observation observation = std::move(queue_.front());
  queue_.pop_front();
  return observation;
}

bool NodeStreams::pause(Seconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, to_chrono(time), [&] { return end_ || interrupt_signal() != 0; });
  return !end_ && interrupt_signal() == 0;
}

void NodeStreams::follow(std::size_t place) noexcept {
  do {
    const auto followed = try_to([&] { follow_once(place); });
    if (followed || end_ || interrupt_signal() != 0) continue;
    const Error& error = followed.error();
    add({.node = place,
         .time = now(),
         .problem =
             NodeProblem{.message = error.message(), .hint = error.hint(), .needs_login = asks_for_login(error)}});
  } while (pause(kTryAgain));
}

// Until the stream ends, which is an Error, or this is to end.
void NodeStreams::follow_once(std::size_t place) {
  fleet::NodeOptions options = options_.node;
  options.ssh.connect_timeout = 5_s;
  options.ssh.fresh_login = true;  // one that died with its node would be joined otherwise
  fleet::Node node(plan_.cluster.nodes[place], static_cast<int>(place), options);
  node.reach();
  if (end_) return;
  add({.node = place,
       .time = now(),
       .machine = from_json<spec::Machine>(node.ask("watch-facts", Document::null(), kFactsLimit))});
  const SamplerOptions question{.interval = plan_.interval, .engine_ports = options_.engine_ports};
  const auto stream = node.open("watch", to_json(question));
  Instant heard = real_clock().now();
  const auto silence = [&] { return to_seconds(real_clock().now() - heard); };
  while (!end_) {
    const auto line = stream->read_line(Deadline::after(0.2_s));
    if (line && line->stream == OutputStream::kOut) {
      heard = real_clock().now();
      add({.node = place, .time = now(), .sample = from_json<Sample>(parse_json(line->text, node.name()))});
      continue;
    }
    if (!line && stream->at_end(OutputStream::kOut)) {
      const auto outcome = stream->wait(Deadline::after(1_s));  // throws what ended the connection
      throw Error(ErrorCode::kUnavailable,
                  "its sampler ended" + (outcome ? ": it " + outcome->describe() : std::string()));
    }
    if (silence() > longest_silence(plan_.interval)) {
      node.disconnect();
      throw Error(ErrorCode::kTimeout, "no sample came for " + to_string(silence()));
    }
  }
}

Document answer_watch_facts(const Document&, agent::AgentContext&) {
  return spec::to_json(probe::probe_machine(probe::quick_sources_here()));
}

}  // namespace yoke::watch
