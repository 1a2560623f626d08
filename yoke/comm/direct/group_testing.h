// Ranks of the direct backend as threads of a test, on as many "nodes" as it names.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/hash.h"
#include "yoke/comm/direct/direct.h"

namespace yoke::comm {

inline const DirectListener::Rails kTwoRails = {{"A", "127.0.0.1"}, {"B", "127.0.0.2"}};

class TestGroup {
 public:
  using Body = std::function<std::vector<std::string>(Communicator&)>;

  explicit TestGroup(const std::vector<std::string>& nodes, const DirectListener::Rails& rails = {},
                     CommunicatorOptions options = {}, Seconds time = {30})
      : options_(std::move(options)), time_(time) {
    membership_.token = random_token_hex(16);
    for (const std::string& node : nodes) {
      listeners_.push_back(DirectListener::open(rails));
      membership_.members.push_back({node, listeners_.back()->endpoints()});
    }
    comms_.resize(nodes.size());
  }

  int size() const { return membership_.size(); }
  spec::Membership& membership() { return membership_; }
  std::shared_ptr<DirectListener>& listener(int rank) { return listeners_[static_cast<std::size_t>(rank)]; }
  std::unique_ptr<Communicator>& comm(int rank) { return comms_[static_cast<std::size_t>(rank)]; }
  CommunicatorOptions& options() { return options_; }

  void make(int rank) { comm(rank) = make_direct(listener(rank), membership_, rank, options_, Deadline::after(time_)); }

  // Each rank in a thread of its own; made where it is not yet. An Error that a rank throws becomes its only line.
  std::vector<std::string> run(const Body& body) {
    std::vector<std::vector<std::string>> lines(comms_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          if (!comm(rank)) make(rank);
          lines[static_cast<std::size_t>(rank)] = body(*comm(rank));
        } catch (const Error& error) {
          lines[static_cast<std::size_t>(rank)] = {
              fmt::format("rank {}: {}: {}", rank, info(error.code()).name, error.message())};
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string> all;
    for (const auto& of_rank : lines) all.insert(all.end(), of_rank.begin(), of_rank.end());
    return all;
  }

 private:
  spec::Membership membership_;
  CommunicatorOptions options_;
  Seconds time_;
  std::vector<std::shared_ptr<DirectListener>> listeners_;
  std::vector<std::unique_ptr<Communicator>> comms_;
};

}  // namespace yoke::comm
