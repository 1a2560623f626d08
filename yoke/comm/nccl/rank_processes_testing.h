// A test whose ranks are processes: the test program starts itself once per rank, with the same test and an
// environment that says which rank it is, so that a rank can be killed and stopped like a real one. Only tests include
// this.
//
//   TEST(Nccl, DoesThis) {
//     if (const auto part = rank_part()) return play(*part);   // in a rank
//     RankProcesses ranks(4);                                  // in the test: they run
//     ranks.expect_success(Deadline::after(60_s));
//   }
//
// Ranks meet in a folder: a file there is a message to all.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke::comm::nccl {

struct RankPart {
  int rank = 0;
  int size = 1;
  int epoch = 1;
  std::filesystem::path folder;

  void say(const std::string& message, const std::string& text = {}) const {
    write_file_atomically(folder / message, text);
  }
  // What was said, as soon as it is; throws kTimeout.
  std::string hear(const std::string& message, Deadline deadline) const {
    while (!std::filesystem::exists(folder / message)) {
      if (deadline.expired()) throw Error(ErrorCode::kTimeout, "nobody said " + message);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return read_file(folder / message);
  }
};

inline std::optional<RankPart> rank_part() {
  const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
  if (std::getenv("YOKE_TEST_RANK") == nullptr) return std::nullopt;
  return RankPart{.rank = number("YOKE_TEST_RANK"),
                  .size = number("YOKE_TEST_SIZE"),
                  .epoch = number("YOKE_TEST_EPOCH"),
                  .folder = std::getenv("YOKE_TEST_FOLDER")};
}

class RankProcesses {
 public:
  explicit RankProcesses(int size) : size_(size) {
    for (int rank = 0; rank < size; ++rank) processes_.push_back(start(rank, 1));
  }

  RankPart watcher() const { return {.rank = -1, .size = size_, .folder = folder_.path()}; }
  void signal(int rank, int number) const { ::kill(at(rank).pid(), number); }

  // The place of a rank that was killed is taken by a new process.
  void replace(int rank, int epoch) {
    processes_.push_back(start(rank, epoch));
    std::swap(processes_[static_cast<std::size_t>(rank)], processes_.back());
    processes_.pop_back();
  }

  void expect_success(int rank, Deadline deadline) {
    const auto outcome = at(rank).wait(deadline);
    if (!outcome) {
      ADD_FAILURE() << "rank " << rank << " of " << size_ << " does not end";
      return;
    }
    EXPECT_TRUE(outcome->ok()) << "rank " << rank << " of " << size_ << " " << outcome->describe() << "\n"
                               << outcome->out << outcome->err;
  }
  void expect_success(Deadline deadline) {
    for (int rank = 0; rank < size_; ++rank) expect_success(rank, deadline);
  }

 private:
  Process& at(int rank) { return *processes_[static_cast<std::size_t>(rank)]; }
  const Process& at(int rank) const { return *processes_[static_cast<std::size_t>(rank)]; }

  // A host id for each, because NCCL refuses two ranks of one host on one GPU. The loopback carries the data then, so
  // that a rank's death is seen as on a network.
  std::unique_ptr<Process> start(int rank, int epoch) const {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::make_unique<Process>(
        Command{.argv = {"/proc/self/exe", fmt::format("--gtest_filter={}.{}", test->test_suite_name(), test->name())},
                .environment = {{"YOKE_TEST_RANK", std::to_string(rank)},
                                {"YOKE_TEST_SIZE", std::to_string(size_)},
                                {"YOKE_TEST_EPOCH", std::to_string(epoch)},
                                {"YOKE_TEST_FOLDER", folder_.path()},
                                {"NCCL_HOSTID", fmt::format("rank-{}", rank)},
                                {"NCCL_SOCKET_IFNAME", "lo"},
                                {"NCCL_IB_DISABLE", "1"},
                                {"NCCL_DEBUG", "WARN"}}});
  }

  int size_;
  ScratchDir folder_;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace yoke::comm::nccl
