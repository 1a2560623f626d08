// What the tests of run, chat and verify share: the models, and the program in a folder of its own.
#pragma once
#include <gtest/gtest.h>

#include "tests/lab_fixture.h"
#include "yoke/base/build_info.h"
#include "yoke/base/json.h"

namespace yoke::tests {

inline const std::string kNano = std::string(YOKE_SOURCE_DIR) + "/models/nano";
inline const std::string kGolden = std::string(YOKE_SOURCE_DIR) + "/tests/golden/";
inline const std::string kQuestion = "Which cable joins two units?";
inline const std::string kAnswer =
    "One QSFP cable (200G direct-attach copper) joins two Sparks, in the same port on both.";

// Runs in a folder of its own, where no cluster file is.
struct EngineTest : testing::Test {
  const ScratchDir scratch{"yoke-run"};
  Outcome yoke(std::vector<std::string> arguments, std::string input = {}) const {
    return run_yoke(std::move(arguments),
                    {.folder = scratch.path(), .input = std::move(input), .timeout = Seconds{120}});
  }
  Document yoke_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const Outcome outcome = yoke(arguments);
    EXPECT_TRUE(outcome.ok()) << outcome.err;
    return parse_json(outcome.out, "out");
  }
  // The words of a mpirun line that starts so many of us.
  Outcome mpirun(int ranks, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np"};
    argv.push_back(fmt::format("{}", ranks));
    argv.emplace_back(YOKE_PROGRAM);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run({.argv = argv,
                .environment = {{"OMPI_MCA_mpi_yield_when_idle", "1"}},
                .folder = scratch.path(),
                .timeout = Seconds{120}});
  }
};

inline std::optional<std::string> why_no_mpi() {
  if (!find_program("mpirun")) return "mpirun is not installed";
  if (!build_info().sanitizers.empty()) return "Open MPI itself makes sanitizers report";
  return std::nullopt;
}

}  // namespace yoke::tests
