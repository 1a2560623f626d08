#include "yoke/remote/quote.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process.h"

namespace yoke::remote {
namespace {

// What a real shell makes of the words: each followed by a zero byte, which no word can hold.
std::string through_shell(const std::vector<std::string>& words) {
  return run({.argv = {"sh", "-c", "printf '%s\\0' " + shell_join(words)}, .timeout = Seconds{60}}).out;
}

std::string with_zeros(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += word + '\0';
  return all;
}

TEST(Quote, SurvivesARealShell) {
  const std::vector<std::string> words = {
      "plain",  "",   " ",     "two words", "it's",  "\"double\"", "$HOME",    "`id`",     "a\nb\n",    "\n",   "-n",
      "--",     "~",  "~root", "A=b",       "*",     "[a-z]?",     "#no",      "a;b&c|d",  "(x){y}",    "\\",   "\\\\n",
      "ends\\", "!!", "'",     "''",        "'\\''", "grüße 日本", "\x01\x7f", "\xff\xfe", "tab\there", "\r\n", "%s%d"};
  EXPECT_EQ(through_shell(words), with_zeros(words));
}

TEST(Quote, LeavesPlainWordsReadable) {
  EXPECT_EQ(shell_quote("/usr/bin/nvidia"), "/usr/bin/nvidia");
  EXPECT_EQ(shell_quote("--json"), "--json");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("Which cable?"), "'Which cable?'") << "as a person would write it";
}

TEST(Quote, RefusesAZeroByte) {
  EXPECT_ERROR(shell_quote(std::string_view("a\0b", 3)), ErrorCode::kInvalid, "holds a zero byte");
}

RC_GTEST_PROP(Quote, KeepsAnyBytesButZero, ()) {
  // About a third of the characters are of those that shells care for.
  const auto special = rc::gen::elementOf(std::string(" '\"\\$`!\n~-*?[]{}()<>|&;#=%"));
  const auto any = rc::gen::map(rc::gen::inRange(1, 256), [](int c) { return static_cast<char>(c); });
  const auto word = rc::gen::container<std::string>(rc::gen::oneOf(any, any, special));
  const auto words = *rc::gen::container<std::vector<std::string>>(word);
  if (words.empty()) return;
  RC_ASSERT(through_shell(words) == with_zeros(words));
}

}  // namespace
}  // namespace yoke::remote
