// How much memory is left on this machine, read without allocating: descriptors are opened once and read again. What
// the kernel calls available, or what the control groups around us leave, whichever is less.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/units.h"

namespace yoke::launch {

class MemoryGauge {
 public:
  MemoryGauge();
  // The least of all; -1 where nothing can be read.
  std::int64_t available() const;
  std::int64_t total() const { return total_; }
  // The share of the last ten seconds in which all processes waited for memory, in percent (PSI); -1: not known.
  double full_pressure() const;

 private:
  struct Group {
    UniqueFd limit, usage, stat;
    bool version2 = true;
  };
  void add_groups();
  std::int64_t left_in(const Group& group) const;

  UniqueFd meminfo_, pressure_;
  std::vector<Group> groups_;
  std::int64_t total_ = 0;
};

// "MemAvailable:   123 kB" and the like: the number behind a name in a text; -1 where there is none.
std::int64_t number_after(std::string_view text, std::string_view name);

}  // namespace yoke::launch
