#include "yoke/plan/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke::plan {

template <class Visitor>
void visit_fields(Visitor& visit, MeasuredConstant& constant) {
  visit.required("name", constant.name);
  visit.required("value", constant.value);
}
template <class Visitor>
void visit_fields(Visitor& visit, CurvePoint& point) {
  visit.required("bytes", point.bytes);
  visit.required("seconds", point.seconds);
}
template <class Visitor>
void visit_fields(Visitor& visit, ReadRate& read) {
  visit.required("constant", read.constant);
  visit.required("bytes", read.bytes);
  visit.required("rate", read.rate);
}
template <class Visitor>
void visit_fields(Visitor& visit, Calibration& calibration) {
  visit.required("name", calibration.name);
  visit.required("time", calibration.time);
  visit.optional("processor", calibration.processor);
  visit.optional("backend", calibration.backend);
  visit.optional("transport", calibration.transport);
  visit.required("nodes", calibration.nodes);
  visit.optional("threads", calibration.threads);
  visit.optional("memory", calibration.memory);
  visit.optional("bandwidth", calibration.bandwidth);
  visit.optional("arithmetic", calibration.arithmetic);
  visit.optional("constants", calibration.constants);
  visit.optional("reads", calibration.reads);
  visit.optional("all_reduce", calibration.all_reduce);
  visit.optional("all_reduce_bare", calibration.all_reduce_bare);
}

namespace {

constexpr int kCalibratedNodesMax = 4096;
constexpr std::size_t kTextMax = 200;
constexpr double kReadRateMax = 1e15;  // bytes/s

const ConstantRow* find_constant(std::string_view name) {
  for (const ConstantRow& row : constant_table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

[[noreturn]] void refuse(const Document& document, const std::string& what) {
  throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", document.where, what),
              "'yoke bench calibrate' writes a new calibration");
}

void check_constants(const Document& document, const Calibration& calibration) {
  for (const MeasuredConstant& constant : calibration.constants) {
    const ConstantRow* const row = find_constant(constant.name);
    if (row == nullptr) refuse(document, fmt::format("no constant is called '{}'", printable(constant.name, 60)));
    // A cache can make a small model faster than memory, but not by much: the rest is a mistake.
    const double high = row->unit.empty() ? 10 : 1e9;
    if (!within(constant.value, 1e-9, high)) {
      refuse(document, fmt::format("{} cannot be {:g}{}{}", constant.name, constant.value, row->unit.empty() ? "" : " ",
                                   row->unit));
    }
  }
}

void check_curve(const Document& document, std::string_view name, const std::vector<CurvePoint>& curve) {
  double before = -1;
  for (const CurvePoint& point : curve) {
    if (!within(point.bytes, 0, 1e15) || point.bytes <= before) {
      refuse(document, fmt::format("sizes of {} do not rise", name));
    }
    if (!within(point.seconds, 1e-9, 1e6)) refuse(document, fmt::format("a time of {} is out of range", name));
    before = point.bytes;
  }
}

void check_reads(const Document& document, const std::vector<ReadRate>& reads) {
  const ReadRate* before = nullptr;
  for (const ReadRate& read : reads) {
    if (find_constant(read.constant) == nullptr) {
      refuse(document, fmt::format("no constant is called '{}'", printable(read.constant, 60)));
    }
    const bool rises = before == nullptr || before->constant != read.constant || before->bytes < read.bytes;
    if (!within(read.bytes, 1, 1e15) || !rises) refuse(document, "sizes of reads do not rise");
    if (!within(read.rate, 1, kReadRateMax)) refuse(document, "a rate of reads is out of range");
    before = &read;
  }
}

}  // namespace

Document to_json(const Calibration& calibration) { return write_fields(calibration); }

void from_json(const Document& document, Calibration& calibration) {
  read_fields(document, calibration);
  const bool has_sizes = within(calibration.nodes, 1, kCalibratedNodesMax) && within(calibration.threads, 0, 4096) &&
                         within(calibration.memory, 0, 1e15) && within(calibration.bandwidth, 0, 1e16) &&
                         within(calibration.arithmetic, 0, 1e18);
  if (!has_sizes) refuse(document, "nodes, threads, memory, bandwidth or arithmetic are out of range");
  for (const std::string* text :
       {&calibration.name, &calibration.time, &calibration.processor, &calibration.backend, &calibration.transport}) {
    if (text->size() > kTextMax) refuse(document, "a text is longer than 200 characters");
  }
  check_constants(document, calibration);
  check_reads(document, calibration.reads);
  check_curve(document, "all_reduce", calibration.all_reduce);
  check_curve(document, "all_reduce_bare", calibration.all_reduce_bare);
}

void set_measured(Constants& constants, const Calibration& calibration) {
  for (const MeasuredConstant& constant : calibration.constants) {
    if (const ConstantRow* const row = find_constant(constant.name)) constants.set_measured(row->id, constant.value);
  }
}

double curve_seconds(const std::vector<CurvePoint>& curve, double bytes) {
  if (curve.empty()) return 0;
  if (bytes <= curve.front().bytes || curve.size() == 1) return curve.front().seconds;
  auto after = std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& point) { return point.bytes >= bytes; });
  if (after == curve.end()) after = std::prev(curve.end());
  const CurvePoint& right = *after;
  const CurvePoint& left = *std::prev(after);
  const double slope = (right.seconds - left.seconds) / (right.bytes - left.bytes);
  return std::max(left.seconds + slope * (bytes - left.bytes), curve.front().seconds);
}

std::optional<double> read_rate(const Calibration& calibration, std::string_view constant, double bytes) {
  const ReadRate* below = nullptr;
  for (const ReadRate& read : calibration.reads) {
    if (read.constant != constant) continue;
    if (read.bytes >= bytes) {
      if (below == nullptr) return read.rate;
      const double part = std::log(bytes / below->bytes) / std::log(read.bytes / below->bytes);
      return below->rate * std::pow(read.rate / below->rate, part);
    }
    below = &read;
  }
  return below == nullptr ? std::nullopt : std::optional(below->rate);
}

}  // namespace yoke::plan
