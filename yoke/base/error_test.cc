#include "yoke/base/error.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "yoke/base/error_testing.h"
#include "yoke/base/result.h"

namespace yoke {
namespace {

TEST(Error, CarriesWhatFailedWhatToDoAndWhereFromInsideOut) {
  const Error error = Error(ErrorCode::kTimeout, "no answer", "is it on?").in("asking spark-2").in("checking the link");
  EXPECT_EQ(error.message(), "no answer");
  EXPECT_EQ(error.hint(), "is it on?");
  EXPECT_EQ(error.context(), (std::vector<std::string>{"asking spark-2", "checking the link"}));
  EXPECT_EQ(error.exit_status(), 8);
  EXPECT_STREQ(error.what(), "no answer");
}

TEST(Error, HasOneRowPerCodeWithDifferentNamesAndExitStatuses) {
  std::set<int> statuses = {kExitOk, kExitFindings, kExitUnmeasured, kExitClosedPipe};
  std::set<std::string_view> names;
  for (const ErrorCodeInfo& row : error_codes()) {
    EXPECT_TRUE(statuses.insert(row.exit_status).second) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&info(row.code), &row);
    EXPECT_TRUE(row.http_status >= 400 && row.http_status < 600) << row.name;
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
}

TEST(Error, FromASystemCallNamesTheReasonAndChoosesTheCode) {
  const Error missing = system_error(ENOENT, "cannot open /x");
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.message(), "cannot open /x: No such file or directory");
  EXPECT_EQ(system_error(EACCES, "").code(), ErrorCode::kPermission);
  EXPECT_EQ(system_error(ENOSPC, "").code(), ErrorCode::kExhausted);
  EXPECT_EQ(system_error(ECONNREFUSED, "").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(system_error(EADDRINUSE, "").code(), ErrorCode::kConflict);
}

TEST(Result, ThrowsItsErrorWhereTheCallerCannotGoOn) {
  EXPECT_EQ(value_or_throw(Result<int>(7)), 7);
  EXPECT_ERROR(value_or_throw(Result<int>(Unexpected(Error(ErrorCode::kNotFound, "gone")))), ErrorCode::kNotFound,
               "gone");
}

TEST(Result, CatchesErrorsButNothingElse) {
  const Result<int> caught = try_to([]() -> int { throw Error(ErrorCode::kInvalid, "bad"); });
  ASSERT_FALSE(caught.has_value());
  EXPECT_EQ(caught.error().message(), "bad");
  EXPECT_THROW((void)try_to([]() -> int { throw std::logic_error("a bug"); }), std::logic_error);
}

int refuse() { throw Error(ErrorCode::kUsage, "there is no such node", "name another"); }

TEST(ExpectError, AsksForCodeWordsAndHint) {
  EXPECT_ERROR(refuse(), ErrorCode::kUsage, "no such node");
  EXPECT_ERROR(refuse(), ErrorCode::kUsage, "no such node", "another");
  EXPECT_NONFATAL_FAILURE(EXPECT_ERROR(refuse(), ErrorCode::kInvalid, "no such node"), "threw usage");
  EXPECT_NONFATAL_FAILURE(EXPECT_ERROR(refuse(), ErrorCode::kUsage, "no such rank"), "there is no such node");
  EXPECT_NONFATAL_FAILURE(EXPECT_ERROR(refuse(), ErrorCode::kUsage, "no such node", "wait"), "name another");
  EXPECT_NONFATAL_FAILURE(EXPECT_ERROR(refuse(), ErrorCode::kUsage, "no such node", ""), "name another");
  EXPECT_NONFATAL_FAILURE(EXPECT_ERROR(1 + 1, ErrorCode::kUsage, "no such node"), "threw nothing");
  EXPECT_NONFATAL_FAILURE(EXPECT_ERROR(throw std::logic_error("a bug"), ErrorCode::kUsage, ""), "no Error but: a bug");
}

}  // namespace
}  // namespace yoke
