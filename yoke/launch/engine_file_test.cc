#include "yoke/launch/engine_file.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"

namespace yoke::launch {
namespace {

constexpr const char* kSmall =
    "name: x\ntitle: X\ngoal: serve\nprogram: x\n"
    "processes:\n  - { name: x, on: all, command: [x, \"{model}\", { when: several, words: [--nodes, \"{nodes}\"] }] "
    "}\n";

TEST(EngineFile, EveryShippedDescriptionIsRead) {
  for (const std::string& name : engine_names()) {
    const EngineFile engine = load_engine(name);
    EXPECT_EQ(engine.name, name);
    EXPECT_TRUE(!engine.serves() || engine.ready) << name << " has no health check";
    EXPECT_TRUE(!engine.serves() || !engine.lower.empty()) << name << " names no option to lower";
    EXPECT_TRUE(engine.rest == "optional" || !engine.example.empty()) << name;
  }
}

TEST(EngineFile, WordsDependOnVariables) {
  const EngineFile engine = parse_engine(kSmall, "x.yaml");
  const auto words = [&](const Variables& variables) {
    return expand_words(engine.processes[0].command, variables, {});
  };
  EXPECT_EQ(words({{"model", "m"}, {"nodes", "2"}}), (std::vector<std::string>{"x", "m"}));
  EXPECT_EQ(words({{"model", "m"}, {"nodes", "2"}, {"several", "1"}}),
            (std::vector<std::string>{"x", "m", "--nodes", "2"}));
  EXPECT_EQ(expand_text("{\"a\": {model}}", {{"model", "m"}}), "{\"a\": m}") << "other braces stay";
  EXPECT_EQ(expand_words({{.when = "", .words = {"{rest}"}}}, {}, {{"rest", {"a b", "c"}}}),
            (std::vector<std::string>{"a b", "c"}));
}

TEST(EngineFile, MistakesAreNamedWithTheirLine) {
  const std::string text = kSmall;
  EXPECT_ERROR(parse_engine(text + "colour: red\n", "x.yaml"), ErrorCode::kInvalid, "x.yaml:7: unknown key 'colour'");
  EXPECT_ERROR(parse_engine(text + "order: sideways\n", "x.yaml"), ErrorCode::kInvalid, "'order' cannot be 'sideways'");
  std::string wrong = text;
  wrong.replace(wrong.find("{model}"), 7, "{modle}");
  EXPECT_ERROR(parse_engine(wrong, "x.yaml"), ErrorCode::kInvalid, "there is no variable 'modle'");
  wrong = text;
  wrong.replace(wrong.find("when: several"), 13, "when: severl");
  EXPECT_ERROR(parse_engine(wrong, "x.yaml"), ErrorCode::kInvalid, "there is no variable 'severl'");
  EXPECT_ERROR(parse_engine(text + "ports: [{ name: a, number: 99999, on: head, use: b }]\n", "x.yaml"),
               ErrorCode::kInvalid, "99999 is no port");
  EXPECT_ERROR(parse_engine(text + "environment: [{ name: 'A;B', value: b, reason: c }]\n", "x.yaml"),
               ErrorCode::kInvalid, "'A;B' is no name of a variable");
  EXPECT_ERROR(load_engine("vlm"), ErrorCode::kNotFound, "there is no engine 'vlm'");
}

}  // namespace
}  // namespace yoke::launch
