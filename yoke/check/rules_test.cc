// Each rule has a case that triggers it and no other; two healthy machines trigger none.
#include "yoke/check/rule.h"

#include <gtest/gtest.h>

#include <set>

#include "yoke/base/json.h"
#include "yoke/check/rule_cases_testing.h"

namespace yoke::check {
namespace {

class EachRule : public testing::TestWithParam<RuleCase> {};
TEST_P(EachRule, IsTriggeredByItsFaultAndNoOtherIs) {
  spec::Survey facts = made_pair();
  GetParam().break_it(facts);
  const std::vector<spec::Finding> findings = evaluate(facts);
  ASSERT_EQ(findings.size(), 1U) << rules_of(facts);
  EXPECT_EQ(findings[0].rule, GetParam().rule) << print_json(spec::to_json(findings[0]));
  EXPECT_EQ(findings[0].node.value_or(""), GetParam().node);
  if (GetParam().subject) {
    EXPECT_EQ(findings[0].subject.value_or(""), GetParam().subject);
  }
  for (const std::string* text : {&findings[0].what, &findings[0].evidence, &findings[0].consequence, &findings[0].fix})
    EXPECT_GT(text->size(), 1U) << findings[0].rule;
}
INSTANTIATE_TEST_SUITE_P(Table, EachRule, testing::ValuesIn(all_cases()), [](const auto& test) {
  std::string name = test.param.rule;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + test.param.name;
});

TEST(Rules, AllHaveACase) {
  std::set<std::string> tried;
  for (const RuleCase& one : all_cases()) tried.insert(one.rule);
  for (const Rule& rule : rule_table()) EXPECT_TRUE(tried.contains(std::string(rule.name))) << rule.name;
  EXPECT_EQ(tried.size(), rule_table().size());
}

TEST(Rules, FindNothingOnAHealthyPairMeasuredOrNot) {
  spec::Survey facts = made_pair();
  EXPECT_EQ(evaluate(facts).size(), 0U);
  facts.measurement = made_measurement();
  EXPECT_EQ(evaluate(facts).size(), 0U);
}

}  // namespace
}  // namespace yoke::check
