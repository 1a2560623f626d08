// What nodes answer to a setup: one that lacks a field is an error that names the node, and ends nothing else.
#include "yoke/link/setup_actions.h"
#include "yoke/base/fields.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::link {
namespace {

constexpr const char* kNode = "the answer of spark-2";

TEST(SetupAnswers, ThatLackAFieldAreErrorsThatNameTheNode) {
  EXPECT_ERROR(from_json<StepLook>(parse_json("{}", kNode)), ErrorCode::kInvalid, kNode);
  EXPECT_ERROR(from_json<StepLook>(parse_json(R"({"satisfied": "perhaps"})", kNode)), ErrorCode::kInvalid, kNode);
  EXPECT_ERROR(from_json<StepLook>(parse_json("null", kNode)), ErrorCode::kInvalid, kNode);
  EXPECT_ERROR(from_json<std::vector<UndoRecord>>(parse_json("[{}]", kNode)), ErrorCode::kInvalid, kNode);
  EXPECT_ERROR(from_json<std::vector<UndoRecord>>(parse_json("{}", kNode)), ErrorCode::kInvalid, kNode);
  EXPECT_ERROR(from_json<UndoRequest>(parse_json(R"({"mark": -1})", kNode)), ErrorCode::kInvalid, kNode);
}

}  // namespace
}  // namespace yoke::link
