// Commands that take seconds, for tests that do something to their processes meanwhile.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine_fixture.h"

namespace yoke::tests {

// Runs under a mark by which its processes are found.
struct MarkedRun {
  MarkedRun(const std::filesystem::path& folder, std::vector<std::string> argv) {
    process.emplace(Command{.argv = std::move(argv), .environment = {{kMark, mark}}, .folder = folder});
  }
  std::string read_until(std::size_t bytes) {
    std::string text;
    const Deadline deadline = Deadline::after(Seconds{60});
    while (text.size() < bytes && !deadline.expired() && !process->at_end(OutputStream::kOut)) {
      text += process->read_bytes(OutputStream::kOut, 4096, Deadline::after(Seconds{0.1}));
    }
    return text;
  }
  // The processes that are ranks, of one number or all.
  std::vector<pid_t> ranks(std::optional<int> number = {}) const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0) continue;
      const auto environment = try_to([&] { return read_file(entry.path() / "environ"); });
      const auto line = try_to([&] { return read_file(entry.path() / "cmdline"); });
      if (!environment || !line || line->find(std::string("rank\0engine", 11)) == std::string::npos) continue;
      if (environment->find(std::string(kMark) + "=" + mark) == std::string::npos) continue;
      if (number && environment->find(fmt::format("YOKE_RANK={}", *number)) == std::string::npos) continue;
      found.push_back(pid);
    }
    return found;
  }

  static constexpr const char* kMark = "YOKE_TEST_MARK";
  const std::string mark = random_token_hex(8);
  std::optional<Process> process;
};

// One long answer.
struct LongRun : MarkedRun {
  explicit LongRun(const std::filesystem::path& folder, const std::vector<std::string>& more = {"--ranks", "2"},
                   const std::string& model = kNano)
      : MarkedRun(folder, argv_of(more, model)) {}

  static std::vector<std::string> argv_of(const std::vector<std::string>& more, const std::string& model) {
    // On `ref` it takes seconds: what a test does to it comes in mid-answer on a busy machine too. A sanitizer makes a
    // token take half a second.
    const std::string tokens = build_info().sanitizers.empty() ? "200" : "40";
    std::vector<std::string> argv = {YOKE_PROGRAM, "run",  model,       "-p", kQuestion,   "--logit-bias", "2044=-inf",
                                     "-n",         tokens, "--threads", "1",  "--backend", "ref"};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
};

}  // namespace yoke::tests
