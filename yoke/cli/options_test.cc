#include "yoke/cli/options.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/cli/help_text.h"

namespace yoke::cli {
namespace {

// What comes of giving the only option of a table this text.
std::optional<Error> refusal(const OptionTable& table, const std::string& text) {
  try {
    table.rows().front().set(text);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

TEST(Options, ANumberOutsideOfItsRangeIsRefusedWithTheRange) {
  int rounds = 5;
  OptionTable table;
  table.value("-r,--rounds", "N", "how many (5)", rounds, {1, 1000});
  for (const char* good : {"1", "1000"}) EXPECT_FALSE(refusal(table, good)) << good;
  EXPECT_EQ(rounds, 1000);
  for (const char* wrong : {"0", "1001", "-3"}) {
    const auto error = refusal(table, wrong);
    ASSERT_TRUE(error) << wrong;
    EXPECT_EQ(error->code(), ErrorCode::kUsage);
    EXPECT_EQ(error->message(), std::string("--rounds cannot be ") + wrong);
    EXPECT_EQ(error->hint(), "1 to 1000");
  }
  EXPECT_EQ(refusal(table, "ten")->message(), "--rounds: 'ten' is not a whole number");
  EXPECT_EQ(rounds, 1000);
}

TEST(Options, ARangeMayBeOpen) {
  std::optional<double> tolerance;
  OptionTable table;
  table.value("--tolerance", "X", "how far", tolerance, {.min = 0});
  EXPECT_FALSE(refusal(table, "0.5"));
  EXPECT_EQ(refusal(table, "-1e-9")->hint(), "at least 0");
  EXPECT_EQ(to_string(NumberRange{.max = 7}), "at most 7");
  EXPECT_EQ(to_string(NumberRange{}), "");
}

TEST(Options, HelpPrintsTheRange) {
  int rounds = 5;
  OptionTable table;
  table.value("--rounds", "N", "how many (5)", rounds, {1, 1'000'000});
  table.value("--other", "N", "no matter", rounds);
  EXPECT_EQ(help_of(table.rows()[0]), "how many (5); 1 to 1000000");
  EXPECT_EQ(help_of(table.rows()[1]), "no matter");
}

TEST(Options, ATimeWithoutAUnitIsSeconds) {
  Seconds time{0};
  OptionTable table;
  table.value("--seconds", "TIME", "how long", time, {0.2, 3600});
  EXPECT_FALSE(refusal(table, "1.5"));
  EXPECT_EQ(time.value, 1.5);
  EXPECT_FALSE(refusal(table, "500ms"));
  EXPECT_EQ(time.value, 0.5);
  EXPECT_EQ(refusal(table, "100ms")->message(), "--seconds cannot be 100ms");
  EXPECT_EQ(refusal(table, "100ms")->hint(), "0.2 to 3600");
  EXPECT_TRUE(refusal(table, "3x"));
  EXPECT_TRUE(refusal(table, ""));
}

}  // namespace
}  // namespace yoke::cli
