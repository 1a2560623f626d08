#include "yoke/gameday/answers.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::gameday {
namespace {

const Document kAnswer = parse_json(R"({"rows": [{"size": 8, "name": "a"}, {"size": 64.5}], "none": null})", "test");

TEST(Answers, AreFoundByAPathOfKeysAndPlaces) {
  EXPECT_EQ(number_at(kAnswer, "rows.1.size"), 64.5);
  EXPECT_EQ(text_at(kAnswer, "rows.0.name"), "a");
  EXPECT_EQ(list_at(kAnswer, "rows").items.size(), 2U);
}

TEST(Answers, ThatAreNotThereAreNothingOrAnErrorThatNamesThePath) {
  for (const char* path : {"rows.2", "rows.-1", "rows.x", "rows.0x", "rows.0.size.more", "", "rows."})
    EXPECT_EQ(find_at(kAnswer, path), nullptr) << path;
  try {
    number_at(kAnswer, "rows.0.time");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'rows.0.time'"), std::string::npos);
  }
  EXPECT_ERROR(number_at(kAnswer, "rows.0.name"), ErrorCode::kInvalid, "has no 'rows.0.name' that is a number")
      << "a text is no number";
  EXPECT_ERROR(text_at(kAnswer, "none"), ErrorCode::kInvalid, "has no 'none' that is a text");
  EXPECT_ERROR(list_at(kAnswer, "rows.0"), ErrorCode::kInvalid, "has no 'rows.0' that is a list");
}

}  // namespace
}  // namespace yoke::gameday
