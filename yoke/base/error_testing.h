// How tests ask for an Error: always by its code and by words of its message, since any other failure on the way is an
// Error too.
//
//   EXPECT_ERROR(read_file("/x"), ErrorCode::kNotFound, "cannot open /x");
//   EXPECT_ERROR(node.reach(), ErrorCode::kUnavailable, "does not answer", "is it on?") << node.name();   with the hint
//
// The words may be any part of the message; for the hint, "" means that there is none.
#pragma once
#include <gtest/gtest.h>

#include <concepts>
#include <optional>
#include <string_view>

#include "yoke/base/error.h"

namespace yoke {

// The Error that a function throws. One that throws none fails the test; anything else that it throws passes through.
template <std::invocable Function>
Error error_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return Error(ErrorCode::kInternal, "no Error was thrown");
}

inline testing::AssertionResult is_error(const Error& error, ErrorCode code, std::string_view words,
                                         std::optional<std::string_view> hint = {}) {
  const bool right_hint =
      !hint || (hint->empty() ? error.hint().empty() : error.hint().find(*hint) != std::string::npos);
  if (error.code() == code && error.message().find(words) != std::string::npos && right_hint) {
    return testing::AssertionSuccess();
  }
  testing::AssertionResult failure = testing::AssertionFailure();
  failure << "  threw " << info(error.code()).name << ": \"" << error.message() << "\"\n";
  if (hint) failure << "  hint: \"" << error.hint() << "\"\n";
  failure << "expected " << info(code).name << ": \"" << words << "\"";
  if (hint) failure << "\n  hint: \"" << *hint << "\"";
  return failure;
}

template <std::invocable Function>
testing::AssertionResult throws_error(Function&& function, ErrorCode code, std::string_view words,
                                      std::optional<std::string_view> hint = {}) {
  try {
    function();
  } catch (const Error& error) {
    return is_error(error, code, words, hint);
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << "  threw no Error but: " << error.what();
  }
  return testing::AssertionFailure() << "  threw nothing\nexpected " << info(code).name << ": \"" << words << "\"";
}

// A row for a loop over inputs that are refused: what goes in, and words of the message. (A structured binding could
// not be used in EXPECT_ERROR: older clang captures none.)
struct WrongInput {
  const char* text;
  const char* words;
};

}  // namespace yoke

#define EXPECT_ERROR(expression, ...)                                                  \
  GTEST_AMBIGUOUS_ELSE_BLOCKER_                                                        \
  if (const testing::AssertionResult yoke_thrown =                                     \
          ::yoke::throws_error([&] { static_cast<void>(expression); }, __VA_ARGS__)) { \
  } else                                                                               \
    ADD_FAILURE() << #expression << "\n" << yoke_thrown.message() << "\n"
