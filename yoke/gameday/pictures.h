// Pictures of a day for its page: the nodes with their rails, and an answer's tokens per second around what happened
// to it. Pure.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "yoke/report/chart.h"
#include "yoke/spec/cluster.h"

namespace yoke::gameday {

// Text for a fixed-width font, a line for each rail:
//
//   spark-1  enp1s0f0np0 192.168.100.1 ══ A ══ 192.168.100.2 enp1s0f0np0  spark-2
//
// Rails whose networks two nodes share are drawn as a cable, rails of one network of more nodes as ends at a switch.
std::string draw_rails(const spec::Cluster& cluster);

// How much of an answer had come, and when.
struct AnswerProgress {
  double seconds = 0;  // since the first of it
  std::size_t length = 0;
};

struct AnswerCourse {
  std::vector<AnswerProgress> progress;  // in order
  std::size_t tokens = 0;                // of the whole answer
  double event_seconds = 0;
  std::string event;  // "rank killed"
};

// Tokens per second over time, counted in equal intervals, with a line where the event was. Tokens are taken as equally
// long: the program streams text.
report::LineChart rate_chart(const AnswerCourse& course);

}  // namespace yoke::gameday
