// Runs a function once for each rank, each in a thread of its own: for tests of communicators inside one process.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::comm {

// What a rank returns is gathered in the order of ranks; an Error that it throws becomes its only line.
inline std::vector<std::string> run_on_threads(std::vector<std::unique_ptr<Communicator>>& ranks,
                                               const std::function<std::vector<std::string>(Communicator&)>& body) {
  std::vector<std::vector<std::string>> lines(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        lines[r] = body(*ranks[r]);
      } catch (const Error& error) {
        lines[r] = {std::string(info(error.code()).name) + ": " + error.message()};
      }
    });
  }
  threads.clear();  // joins
  std::vector<std::string> all;
  for (const auto& of_rank : lines) all.insert(all.end(), of_rank.begin(), of_rank.end());
  return all;
}

}  // namespace yoke::comm
