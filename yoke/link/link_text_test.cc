#include "yoke/link/link_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/text.h"

namespace yoke::link {
namespace {

using namespace literals;
using testing::HasSubstr;

// Two servers with so many rails, measured one after the other and together.
LinkTestResult servers_with(const std::vector<std::string>& rails) {
  PairResult pair{.a = "b300-01", .b = "b300-02", .transport = "rdma"};
  LinkPhase both{.kind = LinkPhaseKind::kBothWays, .loads = {{"b300-01", 10.5}, {"b300-02", 11.5}}};
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const BitsPerSecond rate = 390_Gbps + 0.5_Gbps * static_cast<double>(i);
    for (const auto& [from, to] : {std::pair{"b300-01", "b300-02"}, std::pair{"b300-02", "b300-01"}}) {
      pair.phases.push_back({LinkPhaseKind::kAlone, {{rails[i], from, to, rate}}, both.loads});
      both.rates.push_back({rails[i], from, to, rate});
    }
  }
  pair.phases.push_back(both);
  return {.cluster = "rack",
          .expected = LinkExpectation{400_Gbps, "the catalogue"},
          .pairs = {pair},
          .all_reduce_missing = "it was left out"};
}

TEST(LinkText, EightRailsFitAHundredColumns) {
  const std::string text = link_test_text(servers_with({"A", "B", "C", "D", "E", "F", "G", "H"}));
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_THAT(text, HasSubstr("\nA to H, both ways  b300-01 to b300-02   3.13 Tb/s  390 to 394 Gb/s  "));
}

TEST(LinkText, TwoRailsAreBothNamedAndRailsWithAGapAreListed) {
  EXPECT_THAT(link_test_text(servers_with({"A", "B"})),
              HasSubstr("\nA + B, both ways  b300-01 to b300-02  780.5 Gb/s  390 Gb/s + 390.5 Gb/s  "));
  EXPECT_THAT(link_test_text(servers_with({"A", "B", "D"})), HasSubstr("\nA + B + D, both ways "));
}

}  // namespace
}  // namespace yoke::link
