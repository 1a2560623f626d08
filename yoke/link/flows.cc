#include "yoke/link/flows.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/interrupt.h"

namespace yoke::link {
namespace {

using namespace literals;

constexpr std::size_t kPiece = 128 << 10;
constexpr Seconds kWarmUp{0.2};  // until the congestion window has grown
constexpr Seconds kRunOut{0.2};  // senders go on: windows of two nodes are not begun at the same instant
constexpr Seconds kDrainLimit{4};

// Blocking with a time limit, unlike base's sockets: a call that fails with "not yet" and a poll for each piece would
// cost a tenth of an unshaped link.
void make_blocking(const Socket& socket) {
  const int flags = fcntl(socket.fd(), F_GETFL);
  const timeval limit{.tv_sec = 0, .tv_usec = 100'000};
  const bool done = flags >= 0 && fcntl(socket.fd(), F_SETFL, flags & ~O_NONBLOCK) == 0 &&
                    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
                    setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0;
  if (!done) throw system_error(errno, "cannot prepare the connection to " + socket.peer());
}

bool is_only_slow(int error_number) { return error_number == EAGAIN || error_number == EINTR; }

struct Stream {
  Socket socket;
  std::atomic<std::int64_t> bytes{0};
  std::atomic<bool> ended{false};
  std::jthread thread = {};  // last: it ends before what it uses goes
};
using Flow = std::vector<std::unique_ptr<Stream>>;

void send_until(Stream& stream, const std::atomic<bool>& began, const std::atomic<bool>& enough) {
  const std::vector<char> piece(kPiece, 'y');
  began.wait(false);
  while (!enough) {
    const ssize_t count = send(stream.socket.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (count > 0) stream.bytes += count;
    if (count < 0 && !is_only_slow(errno)) break;
  }
  shutdown(stream.socket.fd(), SHUT_WR);
  stream.ended = true;
}

void receive_all(Stream& stream, const std::atomic<bool>& enough) {
  std::vector<char> piece(kPiece);
  while (!enough) {
    const ssize_t count = recv(stream.socket.fd(), piece.data(), piece.size(), 0);
    if (count > 0) stream.bytes += count;
    if (count == 0 || (count < 0 && !is_only_slow(errno))) break;
  }
  stream.ended = true;
}

std::int64_t bytes_of(const Flow& flow) {
  std::int64_t sum = 0;
  for (const auto& stream : flow) sum += stream->bytes;
  return sum;
}

bool all(const std::vector<Flow>& flows, const auto& holds) {
  return std::all_of(flows.begin(), flows.end(), [&](const Flow& flow) {
    return std::all_of(flow.begin(), flow.end(), [&](const auto& stream) { return holds(*stream); });
  });
}

void wait_until(Deadline deadline, const auto& holds) {
  while (!holds() && !deadline.expired()) {
    throw_if_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Seconds processor_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
  return {seconds(used.ru_utime) + seconds(used.ru_stime)};
}

std::int64_t flow_retransmits(const Flow& flow) {
  std::int64_t sum = 0;
  for (const auto& stream : flow) sum += link::retransmits_of(stream->socket);
  return sum;
}

// Both sides connect before either accepts: the kernel completes a connection for a listener that is busy.
std::vector<Flow> connect_flows(const FlowRequest& request, Deadline deadline) {
  std::vector<Flow> flows;
  for (const SendFlow& wanted : request.send) {
    Flow& flow = flows.emplace_back();
    for (int i = 0; i < request.streams; ++i) {
      flow.push_back(std::make_unique<Stream>());
      flow.back()->socket = connect_on_rail(wanted.from, wanted.to, request.token, deadline);
      make_blocking(flow.back()->socket);
    }
  }
  return flows;
}

std::vector<Flow> accept_flows(std::vector<Socket>& listeners, const FlowRequest& request, Deadline deadline) {
  std::vector<Flow> flows;
  for (Socket& listener : listeners) {
    Flow& flow = flows.emplace_back();
    RailAcceptor acceptor(listener, request.token);
    for (int i = 0; i < request.streams; ++i) {
      flow.push_back(std::make_unique<Stream>());
      flow.back()->socket = acceptor.next(deadline);
      make_blocking(flow.back()->socket);
    }
  }
  return flows;
}

// In long steps: each waking takes the core from a thread that moves bytes.
void sleep_for(Seconds time) {
  const Deadline deadline = Deadline::after(time);
  while (!deadline.expired()) {
    throw_if_interrupted();
    real_clock().sleep(std::min(Seconds{0.05}, deadline.remaining()));
  }
}

}  // namespace

FlowOutcome move_bytes(std::vector<Socket>& listeners, const FlowRequest& request) {
  // Declared before the threads that ask them; set on every way out, so that the threads can be joined.
  std::atomic<bool> began{false}, sent_enough{false}, received_enough{false};
  std::vector<Flow> outgoing = connect_flows(request, Deadline::after(kConnectLimit));
  std::vector<Flow> incoming = accept_flows(listeners, request, Deadline::after(kAcceptLimit));
  struct Release {
    std::atomic<bool>&began, &sent_enough, &received_enough;
    ~Release() {
      sent_enough = received_enough = began = true;
      began.notify_all();
    }
  } const release{began, sent_enough, received_enough};
  for (const Flow& flow : outgoing) {
    for (const auto& s : flow)
      s->thread = std::jthread([&, stream = s.get()] { send_until(*stream, began, sent_enough); });
  }
  for (const Flow& flow : incoming) {
    for (const auto& s : flow)
      s->thread = std::jthread([&, stream = s.get()] { receive_all(*stream, received_enough); });
  }
  began = true;
  began.notify_all();
  // A flow of which nothing comes does not hold up the others: its rate is then zero.
  wait_until(Deadline::after(kWarmUp + 1_s),
             [&] { return all(incoming, [](const Stream& stream) { return stream.bytes > 0 || stream.ended; }); });
  sleep_for(kWarmUp);

  FlowOutcome outcome;
  const Instant start = real_clock().now();
  const Seconds used = processor_time();
  const ProcessorTimes times = read_processor_times();
  for (const Flow& flow : incoming) outcome.received.push_back({.window_bytes = -bytes_of(flow)});
  sleep_for(request.time);
  for (std::size_t i = 0; i < incoming.size(); ++i) outcome.received[i].window_bytes += bytes_of(incoming[i]);
  outcome.window = to_seconds(real_clock().now() - start);
  outcome.cores = (processor_time() - used) / outcome.window;
  outcome.load = load_between(times, read_processor_times());

  sleep_for(kRunOut);
  sent_enough = true;
  const auto ended = [](const Stream& stream) { return stream.ended.load(); };
  wait_until(Deadline::after(kDrainLimit), [&] { return all(outgoing, ended) && all(incoming, ended); });
  for (std::size_t i = 0; i < incoming.size(); ++i) outcome.received[i].bytes = bytes_of(incoming[i]);
  for (const Flow& flow : outgoing) {
    outcome.sent.push_back({.bytes = bytes_of(flow), .retransmits = flow_retransmits(flow)});
  }
  return outcome;
}

template <class Visitor>
void visit_fields(Visitor& visit, SendFlow& flow) {
  visit.required("from", flow.from);
  visit.required("to", flow.to);
}

template <class Visitor>
void visit_fields(Visitor& visit, FlowRequest& request) {
  visit.required("token", request.token);
  visit.optional("send", request.send);
  visit.required("streams", request.streams);
  visit.required("time", request.time);
}

template <class Visitor>
void visit_fields(Visitor& visit, SentFlow& flow) {
  visit.required("bytes", flow.bytes);
  visit.required("retransmits", flow.retransmits);
}

template <class Visitor>
void visit_fields(Visitor& visit, ReceivedFlow& flow) {
  visit.required("bytes", flow.bytes);
  visit.required("window_bytes", flow.window_bytes);
}

template <class Visitor>
void visit_fields(Visitor& visit, ProcessorLoad& load) {
  visit.required("busy", load.busy);
  visit.required("stolen", load.stolen);
  visit.required("throttled", load.throttled);
  visit.required("cores", load.cores);
  visit.required("machine", load.machine);
}

template <class Visitor>
void visit_fields(Visitor& visit, FlowOutcome& outcome) {
  visit.optional("sent", outcome.sent);
  visit.optional("received", outcome.received);
  visit.required("window", outcome.window);
  visit.required("cores", outcome.cores);
  visit.required("load", outcome.load);
}

Document to_json(const FlowRequest& request) { return write_fields(request); }
void from_json(const Document& document, FlowRequest& request) { read_fields(document, request); }
Document to_json(const FlowOutcome& outcome) { return write_fields(outcome); }
void from_json(const Document& document, FlowOutcome& outcome) { read_fields(document, outcome); }

}  // namespace yoke::link
