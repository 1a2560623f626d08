// How long a message takes to the other end of a half: one socket, a message there and the same back, thousands of
// times. What is told is half of the round trip, as ib_write_lat tells it. Every answer is checked to be the one that
// belongs to its question. Both ends spin for a while before they sleep, as the collectives do.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/link/half_socket.h"

namespace yoke {

struct PingRound {
  std::int64_t size = 8;  // bytes, at least 8
  int count = 1000;
  int warm_up = 50;  // not counted
};

struct PingRequest {
  std::string token;
  HalfPlace from;
  Endpoint to;
  std::vector<PingRound> rounds;
};

struct PingResult {
  std::int64_t size = 0;
  int count = 0;
  Seconds p50, p99, most;  // p99 of fewer than 100 is the largest
};

// 8 B to 64 KB.
std::vector<PingRound> usual_ping_rounds();

std::vector<PingResult> ping(const PingRequest& request);
// The other end: answers until all rounds are done. Only `token` and `rounds` of the request count.
void answer_pings(Socket& listener, const PingRequest& request);

Document to_json(const PingRequest& request);
PingRequest ping_request_from_json(const Document& document);
Document to_json(const PingResult& result);
PingResult ping_result_from_json(const Document& document);

}  // namespace yoke
