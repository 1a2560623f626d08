// An all-reduce measured by `yoke bench all-reduce --json`, and what it is worth against the link. The verdict is on
// the largest size alone: small messages fit into the queue that shapes a lab's cable, and pass faster than the cable.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/gameday/phase_run.h"

namespace yoke::gameday {

struct BandwidthRow {
  double size = 0;           // bytes
  double time = 0;           // us, the better of out of place and in place
  double bus_bandwidth = 0;  // GB/s, likewise
};

struct Bandwidth {
  std::string transport;
  std::vector<BandwidthRow> rows;
  std::optional<double> limit;  // GB/s of the link, where it is known
  double excess = 1;            // by how much it may rightly be exceeded: trees, switches that reduce
  double wrong = 0;             // values

  double largest() const { return rows.back().bus_bandwidth; }
  // "97% of 0.25 GB/s", or nothing where the limit is not known.
  std::string against_limit() const;
  // Headers take up to a tenth; a machine whose cores carry the cables of all nodes at once a little more. Above the
  // limit the data did not cross this link.
  bool is_complete() const;  // without a limit: nobody knows, and it is false
};

// Expects it to be whole; where no limit is known there is no verdict, and that is said.
void expect_complete(PhaseRun& phase_run, const Bandwidth& bandwidth, const std::string& what);

// Of the answer of a command that measured an all-reduce.
Bandwidth bandwidth_of(const Document& run);
// `cluster_file` and `sizes` as words of the command line.
Bandwidth measure(PhaseRun& phase_run, const std::string& cluster_file, const std::vector<std::string>& sizes);

}  // namespace yoke::gameday
