// What the ranks of a measurement tell each other over the communicator that they measure: numbers and short texts,
// gathered on all ranks. Each call waits until the deadline at most.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::bench {

// One list per rank; every rank gives as many numbers.
std::vector<std::vector<double>> gather_numbers(comm::Communicator& comm, const std::vector<double>& own,
                                                Seconds timeout);
// One text per rank; what is longer than 2 KiB is cut.
std::vector<std::string> gather_texts(comm::Communicator& comm, const std::string& own, Seconds timeout);
void barrier_until(comm::Communicator& comm, Seconds timeout);

}  // namespace yoke::bench
