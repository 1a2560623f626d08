// Moves bytes over rails as fast as they go, and counts what arrives. One node's part: it sends some flows and
// receives others, all in one window, each stream in a thread of its own. The rate is the receiver's: what has arrived
// within the window. Senders begin before the window and end after it, so that it is full whichever node looked at its
// clock first.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/link/processor_load.h"
#include "yoke/link/rail_socket.h"

namespace yoke::link {

struct SendFlow {
  RailPlace from;
  Endpoint to;
};

struct FlowRequest {
  std::string token;
  std::vector<SendFlow> send;
  int streams = 1;  // of each flow, also of those received
  Seconds time{2};
};

struct SentFlow {
  std::int64_t bytes = 0;        // in all, not only in the window
  std::int64_t retransmits = 0;  // segments
};

struct ReceivedFlow {
  std::int64_t bytes = 0;         // in all
  std::int64_t window_bytes = 0;  // within the window
};

struct FlowOutcome {
  std::vector<SentFlow> sent;          // as FlowRequest::send
  std::vector<ReceivedFlow> received;  // as the listeners
  Seconds window;
  double cores = 0;         // what this process used of the processor in the window, in whole cores
  ProcessorLoad load = {};  // of the whole machine in the window
};

// `listeners`: one for each flow that comes in. Throws Error(kUnavailable, kTimeout) where a rail does not connect.
FlowOutcome move_bytes(std::vector<Socket>& listeners, const FlowRequest& request);

Document to_json(const FlowRequest& request);
void from_json(const Document& document, FlowRequest& request);
Document to_json(const FlowOutcome& outcome);
void from_json(const Document& document, FlowOutcome& outcome);

}  // namespace yoke::link
