#include "yoke/check/remembered.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "yoke/base/files.h"
#include "yoke/check/rule.h"

namespace yoke::check {
namespace {

struct MemoryRecords : testing::Test {
  ScratchDir scratch{"yoke-records"};
  void SetUp() override { setenv("XDG_DATA_HOME", scratch.path().c_str(), 1); }
  void TearDown() override { unsetenv("XDG_DATA_HOME"); }

  // One machine, measured now.
  static spec::Survey measured(double rate, double taken = 0, const std::string& processor = "Cortex-X925") {
    spec::SurveyedNode node{.name = "spark-1", .machine = spec::Machine{}};
    node.machine->hostname = "spark-1";
    node.machine->cpu.model = processor;
    node.canary = spec::MemoryCanary{.read = BytesPerSecond{rate}, .taken = taken};
    spec::Survey facts;
    facts.nodes.push_back(std::move(node));
    update_memory_records(facts);
    return facts;
  }
  static double record_in(const spec::Survey& facts) {
    return facts.nodes[0].canary->record.value_or(BytesPerSecond{0}).value;
  }
  static bool is_slower(const spec::Survey& facts) {
    for (const spec::Finding& finding : evaluate(facts)) {
      if (finding.rule == "memory-slower") return true;
    }
    return false;
  }
};

TEST_F(MemoryRecords, TheBestRateOfAMachineIsKeptWithItsDate) {
  EXPECT_EQ(record_in(measured(200e9)), 0) << "the first has nothing to be held against";
  const spec::Survey second = measured(210e9);
  EXPECT_EQ(record_in(second), 200e9);
  EXPECT_EQ(second.nodes[0].canary->record_date.size(), 10U);
  const spec::Survey third = measured(170e9);
  EXPECT_EQ(record_in(third), 210e9);
  EXPECT_FALSE(is_slower(third)) << "1.24 times: measurements vary";
  const spec::Survey slow = measured(100e9);
  EXPECT_EQ(record_in(slow), 210e9);
  EXPECT_TRUE(is_slower(slow));
}

TEST_F(MemoryRecords, ABusyMachineIsNeitherEvaluatedNorARecord) {
  measured(200e9);
  EXPECT_FALSE(is_slower(measured(100e9, 0.5)));
  measured(400e9, 0.5);
  EXPECT_EQ(record_in(measured(200e9)), 200e9);
}

TEST_F(MemoryRecords, AnotherProcessorIsAnotherMachine) {
  measured(200e9);
  EXPECT_EQ(record_in(measured(50e9, 0, "Cortex-A72")), 0);
}

TEST_F(MemoryRecords, AFileThatCannotBeReadIsNoReasonToFail) {
  measured(200e9);
  write_file_atomically(scratch.path() / "yoke/checks/memory-records.json", "{");
  EXPECT_EQ(record_in(measured(100e9)), 0);
}

}  // namespace
}  // namespace yoke::check
