#include "yoke/lab/plain.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/base/socket.h"

namespace yoke::lab {
namespace {

TEST(PlainLab, HasAClusterFileThatIsValid) {
  const LabLayout layout = lay_out_plain_lab({.name = "flat", .nodes = 3});
  const spec::Cluster cluster = lab_cluster(layout);
  EXPECT_EQ(spec::parse_cluster(spec::print_cluster(cluster), "cluster.yaml"), cluster);
  EXPECT_EQ(cluster.lab, "flat");
  EXPECT_EQ(cluster.nodes.at(2).address, "127.77.0.3");
  ASSERT_EQ(cluster.nodes.at(2).rails.size(), 2U);
  EXPECT_EQ(yoke::to_string(cluster.nodes.at(2).rails[0].address), "127.100.0.3/24");
  EXPECT_EQ(yoke::to_string(cluster.nodes.at(2).rails[1].address), "127.101.0.3/24");
  EXPECT_FALSE(cluster.fabric->rail_rate) << "nothing is shaped";
}

TEST(PlainLab, KeepsItsLayout) {
  const LabLayout layout = lay_out_plain_lab({.nodes = 8});
  EXPECT_EQ(from_json<LabLayout>(to_json(layout)), layout);
}

TEST(PlainLab, TakesAnotherPortWhereOneIsTaken) {
  const int first = lay_out_plain_lab({}).ssh_port;
  const Socket taken = listen_tcp({"127.101.0.2", static_cast<std::uint16_t>(first)});
  EXPECT_NE(lay_out_plain_lab({}).ssh_port, first);
}

TEST(PlainLab, RefusesWhatAnyLabRefuses) {
  EXPECT_EQ(try_to([] { return lay_out_plain_lab({.nodes = 1}); }).error().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace yoke::lab
