// A mistake that a user makes, and how it is answered: one clear error, in a table of which a test makes one case each.
#pragma once
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "yoke/base/process.h"

namespace yoke::tests {

struct Mistake {
  const char* name;
  std::vector<std::string> arguments;
  int exit_status;
  const char* message;
  const char* hint;
};

inline void expect_clear_error(const Outcome& outcome, const Mistake& mistake) {
  EXPECT_EQ(outcome.exit_status, mistake.exit_status) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr(mistake.message));
  EXPECT_THAT(outcome.err, testing::HasSubstr(mistake.hint));
}

}  // namespace yoke::tests
