#include "yoke/engine/agreement.h"

#include <gtest/gtest.h>

#include <thread>

#include "yoke/comm/local/local.h"

namespace yoke::engine {
namespace {

// What each of two ranks, on nodes of their own, throws when the failing ones do.
std::vector<Error> thrown_where(const std::vector<std::string>& messages) {
  auto comms = comm::local::make_local(static_cast<int>(messages.size()));
  std::vector<Error> errors(messages.size(), Error(ErrorCode::kInternal, "nothing was thrown"));
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        do_together(*comms[rank], "spark-" + std::to_string(rank + 1), [&] {
          if (!messages[rank].empty()) throw Error(ErrorCode::kNotFound, messages[rank], "copy it there");
        });
      } catch (const AgreedError& error) {
        errors[rank] = error;
      }
    });
  }
  threads.clear();
  return errors;
}

TEST(Agreement, AllThrowWhatFailedOnOneAndNameItsNode) {
  for (const Error& error : thrown_where({"", "there is no model"})) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.message(), "there is no model");
    EXPECT_EQ(error.hint(), "copy it there");
    EXPECT_EQ(error.context(), (std::vector<std::string>{"on spark-2 (rank 1)"}));
  }
}

TEST(Agreement, WhatFailsEverywhereIsOfNoNode) {
  for (const Error& error : thrown_where({"there is no model", "there is no model"})) {
    EXPECT_EQ(error.message(), "there is no model");
    EXPECT_TRUE(error.context().empty());
  }
  EXPECT_EQ(thrown_where({"one cause", "another"})[1].context(), (std::vector<std::string>{"on spark-1 (rank 0)"}));
}

TEST(Agreement, NothingIsThrownWhereAllSucceed) {
  EXPECT_EQ(thrown_where({"", ""})[0].message(), "nothing was thrown");
}

}  // namespace
}  // namespace yoke::engine
