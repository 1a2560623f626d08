// How long a message takes to the other end of a rail: one socket, a message there and the same back, thousands of
// times, or until the round has taken long enough. What is reported is half of the round trip, as ib_write_lat tells
// it. Every answer is checked to be the one that belongs to its question. Both ends spin for a while before they sleep,
// as the collectives do.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/link/rail_socket.h"

namespace yoke::link {

struct PingRound {
  std::int64_t size = 8;  // bytes, at least 8
  int count = 1000;
  int warm_up = 50;  // not counted
};

struct PingRequest {
  std::string token;
  RailPlace from;
  Endpoint to;
  std::vector<PingRound> rounds;
};

struct PingResult {
  std::int64_t size = 0;
  int count = 0;               // fewer than asked where messages are lost
  Seconds min, p50, p99, max;  // p99 of fewer than 100 is the largest
};

struct PingOutcome {
  std::vector<PingResult> rows;  // as the rounds
  std::int64_t messages = 0;     // that this end sent, those to warm up too
  std::int64_t resent = 0;       // segments of them; on a link that nothing else uses: lost on the way, or damaged
};

// 8 B to 64 KB.
std::vector<PingRound> usual_ping_rounds();

PingOutcome ping(const PingRequest& request);
// The other end: answers until all rounds are done, and has no rows. Only `token` and `rounds` of the request count.
PingOutcome answer_pings(Socket& listener, const PingRequest& request);

Document to_json(const PingRequest& request);
void from_json(const Document& document, PingRequest& request);
Document to_json(const PingResult& result);
Document to_json(const PingOutcome& outcome);
void from_json(const Document& document, PingOutcome& outcome);

}  // namespace yoke::link
