#include "yoke/engine/placement.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"

namespace yoke::engine {
namespace {

TEST(Placement, AsManyRanksAsPossibleShareALayer) {
  EXPECT_EQ(tensor_size(4, {1, 2, 4, 8}), 4);
  EXPECT_EQ(tensor_size(4, {1, 2}), 2);
  EXPECT_EQ(tensor_size(3, {1, 2, 4, 8}), 1);
  EXPECT_EQ(tensor_size(6, {1, 2, 4}), 2);
}

TEST(Placement, LayersFollowTheMemoryOfEachStage) {
  const Bytes layer{100};
  EXPECT_EQ(cut_layers({{Bytes{1000}, Bytes{0}}, {Bytes{1000}, Bytes{0}}, {Bytes{1000}, Bytes{0}}}, 9, layer),
            (std::vector<std::int64_t>{0, 3, 6}));
  EXPECT_EQ(cut_layers({{Bytes{3000}, Bytes{0}}, {Bytes{1000}, Bytes{0}}}, 8, layer),
            (std::vector<std::int64_t>{0, 6}));
  EXPECT_EQ(cut_layers({{Bytes{1000}, Bytes{200}}, {Bytes{1000}, Bytes{0}}}, 8, layer),
            (std::vector<std::int64_t>{0, 3}))
      << "who holds the embedding has room for fewer";
  EXPECT_EQ(cut_layers({{Bytes{9000}, Bytes{0}}, {Bytes{1}, Bytes{0}}}, 4, layer), (std::vector<std::int64_t>{0, 3}))
      << "every stage has a layer";
  EXPECT_ERROR(cut_layers(std::vector<StageRoom>(5), 4, layer), ErrorCode::kInvalid, "5 stages cannot share 4 layers");
}

TEST(Placement, ARankKnowsItsStageAndItsPlaceThere) {
  const models::Mesh mesh = place_in_mesh(5, 2, {0, 3, 5}, 9);
  EXPECT_EQ(mesh.stage, 2);
  EXPECT_EQ(mesh.rank, 1);
  EXPECT_EQ(mesh.layers, (tensor::Range{5, 9}));
  EXPECT_TRUE(mesh.is_last());
}

}  // namespace
}  // namespace yoke::engine
