// What `yoke bench calibrate` measured on one cluster or machine, in the place of the catalogue's figures and the
// shipped constants: plain data with a JSON round trip. Plans of that cluster use it and say "measured here".
//
//   Calibration calibration = from_json<Calibration>(parse_json(text, file));
//   calibrate(calibration, machines);          // machine.h: memory, bandwidth, arithmetic, all-reduce
//   make_plan({.machines = machines, …}, …);   // replaces the constants that were measured
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/plan/constants.h"

namespace yoke::plan {

struct MeasuredConstant {
  std::string name;  // of constant_table()
  double value = 0;  // in the table's unit
  friend bool operator==(const MeasuredConstant&, const MeasuredConstant&) = default;
};

// One all-reduce over all nodes.
struct CurvePoint {
  double bytes = 0;
  double seconds = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// How fast one rank reads its weights of one format, by how many bytes of weights it reads in a step: those of a small
// model lie in the processor's caches.
struct ReadRate {
  std::string constant;  // of constant_table(): "decode.cpu.4bit.bandwidth"
  double bytes = 0;
  double rate = 0;  // bytes/s
  friend bool operator==(const ReadRate&, const ReadRate&) = default;
};

struct Calibration {
  std::string name;       // of the cluster, or of the host
  std::string time;       // UTC
  std::string processor;  // of the head
  std::string backend;    // of yoke's engine
  std::string transport;  // what carried the all-reduces: "direct", "nccl"; empty: one node
  int nodes = 1;
  int threads = 0;        // of each rank; 0: the engine's own choice
  double memory = 0;      // bytes available on the node with least; 0: not measured
  double bandwidth = 0;   // bytes/s read by all cores of a node; 0: not measured, or not what a GPU sees
  double arithmetic = 0;  // FLOP/s of a node; 0 as above
  std::vector<MeasuredConstant> constants = {};
  std::vector<ReadRate> reads = {};              // of each constant: rising sizes
  std::vector<CurvePoint> all_reduce = {};       // as the engine waits for it; rising sizes
  std::vector<CurvePoint> all_reduce_bare = {};  // as 'yoke bench all-reduce' measures it
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

Document to_json(const Calibration& calibration);
// Error(kInvalid) names what is wrong: an unknown constant, a value that cannot be, sizes that do not rise.
void from_json(const Document& document, Calibration& calibration);

// Replaces the constants that were measured, and marks them so.
void set_measured(Constants& constants, const Calibration& calibration);

// Seconds of an all-reduce of so many bytes: a line between the measured sizes, the last slope beyond them.
double curve_seconds(const std::vector<CurvePoint>& curve, double bytes);

// Bytes/s of one rank whose weights are so many bytes: a line between the measured sizes on logarithmic scales, the
// nearest size beyond them. Nothing where none was measured.
std::optional<double> read_rate(const Calibration& calibration, std::string_view constant, double bytes);

}  // namespace yoke::plan
