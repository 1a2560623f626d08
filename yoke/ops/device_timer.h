// The clock of a device on which work is enqueued: marks lie between the operations of its stream.
#pragma once
#include <cstddef>

namespace yoke::ops {

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual std::size_t mark() = 0;                                      // here in the stream; counted from 0
  virtual double seconds(std::size_t from, std::size_t to) const = 0;  // once both have passed
  virtual void forget() = 0;                                           // all marks
};

}  // namespace yoke::ops
