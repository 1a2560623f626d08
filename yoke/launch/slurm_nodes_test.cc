#include "yoke/launch/slurm_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/launch/modules.h"

namespace yoke::launch {
namespace {

using testing::HasSubstr;

TEST(SlurmNodes, ReportsNodesThatTakeNoJobAndNodesThatSlurmDoesNotKnow) {
  const std::string sinfo =
      "a|idle|none\nb|down*|Not responding\nc|drained|bad cable\nd|mixed-|none\na|idle|none\ne|allocated|none\n";
  EXPECT_TRUE(evaluate_slurm_nodes({"a", "d", "e"}, sinfo).empty());
  const auto findings = evaluate_slurm_nodes({"a", "b", "c", "z"}, sinfo);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].what, "Slurm does not start jobs on b.");
  EXPECT_THAT(findings[0].evidence, HasSubstr("does not answer the controller (Not responding)"));
  EXPECT_THAT(findings[1].evidence, HasSubstr("'drained' (bad cable)"));
  EXPECT_EQ(findings[2].what, "Slurm knows no node 'z'.");
  EXPECT_EQ(evaluate_slurm_nodes({"a"}, "").size(), 1U);
}

// A stand-in for the function that Environment Modules define; it knows one module.
constexpr const char* kModuleFunction =
    "module() {\n"
    "  case \"$1 $2\" in\n"
    "    'load cuda/12.4') loaded=\"$loaded cuda/12.4\" ;;\n"
    "    '-t list') for one in $loaded; do echo \"$one\"; done >&2 ;;\n"
    "  esac\n"
    "}\n";

TEST(Modules, EndAScriptThatCannotLoadThem) {
  EXPECT_EQ(parse_modules(" cuda/12.4,nccl/2.20  gcc"), (std::vector<std::string>{"cuda/12.4", "nccl/2.20", "gcc"}));
  EXPECT_TRUE(parse_modules("").empty());
  EXPECT_EQ(modules_text({}), "");
  EXPECT_ERROR(parse_modules("cuda;reboot"), ErrorCode::kUsage, "is no name of a module");
  EXPECT_ERROR(parse_modules("--force"), ErrorCode::kUsage, "is no name of a module");
  const auto bash = [](const std::string& text) { return run({.argv = {"bash", "-c", text}}); };
  const std::string before = std::string(kModuleFunction) + "set -euo pipefail\nloaded=\n";
  EXPECT_TRUE(bash(before + modules_text({"cuda/12.4"}) + "exit 0\n").ok());
  const Outcome missing = bash(before + modules_text({"cuda/12.4", "nccl/2.20"}) + "exit 0\n");
  EXPECT_EQ(missing.exit_status, 2);
  EXPECT_THAT(missing.err, HasSubstr("the module nccl/2.20 cannot be loaded on "));
  const Outcome checked = bash(kModuleFunction + modules_check_text({"nccl/2.20", "cuda/12.4"}));
  EXPECT_EQ(checked.exit_status, 1);
  EXPECT_EQ(checked.out, "nccl/2.20\n");
}

}  // namespace
}  // namespace yoke::launch
