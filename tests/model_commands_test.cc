// yoke model and yoke tokenize as a person or a script meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <thread>

#include "tests/program.h"
#include "tests/terminal.h"
#include "yoke/base/clock.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/text/chat.h"
#include "yoke/text/tokenizer.h"
#include "yoke/weights/model_files.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;

const std::string kNanoFolder = kSourceFolder / "models/nano";

struct ModelCommands : testing::Test {
  ScratchDir scratch;
  Outcome yoke(std::vector<std::string> arguments, std::string input = "") {
    Command command{.folder = scratch.path()};
    command.input = std::move(input);
    return run_yoke(std::move(arguments), std::move(command));
  }
  Document json(std::vector<std::string> arguments, std::string input = "") {
    arguments.emplace_back("--json");
    const Outcome outcome = yoke(std::move(arguments), std::move(input));
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    return parse_json(outcome.out, "out");
  }
  std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch.path())) names.insert(entry.path().filename());
    return names;
  }
};

TEST_F(ModelCommands, AMadeModelIsShownAsWhatWasAskedFor) {
  const Outcome made = yoke({"model", "make", "--shape", "qwen2.5-0.5b", "--format", "nvfp4", "--layers", "1",
                             "--shard-size", "200MB", "made"});
  ASSERT_EQ(made.exit_status, 0) << made.err;
  EXPECT_NE(made.out.find("qwen2.5-0.5b with random weights, 1 layers"), std::string::npos) << made.out;
  const Document shown = json({"model", "show", "made"});
  EXPECT_EQ(shown.find("architecture")->text, "Qwen2ForCausalLM");
  EXPECT_EQ(shown.find("layers")->text, "1");
  EXPECT_EQ(shown.find("catalogued")->text, "qwen2.5-0.5b");
  EXPECT_EQ(shown.find("quantization")->text, "compressed-tensors");
  EXPECT_EQ(shown.find("tokens")->text, "151936");
  EXPECT_EQ(shown.find("chat_template")->text, "true");
  EXPECT_EQ(shown.find("kv_bytes_per_token")->text, "512");
  EXPECT_EQ(shown.find("files")->items.size(), 2U);
  const std::string table = yoke({"model", "show", "made"}).out;
  for (const char* part : {"Qwen2ForCausalLM (shape of qwen2.5-0.5b)", "512 B a token", "nvfp4", "of-00002"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
}

TEST_F(ModelCommands, TheTokenizerOfAMadeModelHasATextForEveryId) {
  ASSERT_EQ(yoke({"model", "make", "--shape", "llama-2-7b", "--format", "w4a16", "--layers", "1", "made"}).exit_status,
            0);
  const text::Tokenizer tokenizer = text::Tokenizer::load(scratch.path() / "made/tokenizer.json");
  ASSERT_EQ(tokenizer.size(), 32000);
  std::set<std::string> texts;
  for (text::TokenId id = 2048; id < tokenizer.size(); ++id) {
    const std::string text = tokenizer.decode(std::vector{id});
    EXPECT_TRUE(texts.insert(text).second) << text;
    EXPECT_EQ(tokenizer.encode(text), std::vector{id}) << "so that text fed back is the same tokens";
  }
  const std::string prompt = "Which cable joins two units? Ünïcode, too.\n";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(prompt)), prompt);
  const text::Tokenizer nano = text::Tokenizer::load(fs::path(kNanoFolder) / "tokenizer.json");
  EXPECT_EQ(tokenizer.encode(prompt), nano.encode(prompt));
  EXPECT_EQ(tokenizer.encode("<|end|>"), nano.encode("<|end|>")) << "a user's text is never a special token";
  EXPECT_GT(tokenizer.encode("<|end|>").size(), 1U);
  EXPECT_TRUE(tokenizer.is_special(*tokenizer.find("<|end|>")));
  EXPECT_NO_THROW(text::ChatTemplate::load(scratch.path() / "made"));
}

TEST_F(ModelCommands, GrowingReachesTheSizeAndKeepsTheGoldens) {
  const Outcome outcome = yoke({"model", "grow", kNanoFolder, "deep", "--size", "20MB", "--shard-size", "8MB"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  const weights::ModelFiles deep(scratch.path() / "deep");
  EXPECT_GE(deep.bytes(), Bytes{20'000'000});
  EXPECT_LT(deep.bytes(), Bytes{20'500'000});
  for (const char* file : {"golden.json", "golden.safetensors", "tokenizer.json", "tokenizer_config.json"}) {
    EXPECT_EQ(read_file(scratch.path() / "deep" / file), read_file(fs::path(kNanoFolder) / file)) << file;
  }
  EXPECT_EQ(json({"model", "show", "deep"}).find("catalogued")->text, "nano");
  EXPECT_EQ(json({"model", "grow", "deep", "deeper", "--layers", "60"}).find("layers")->text, "60");
}

TEST_F(ModelCommands, CtrlCLeavesNothing) {
  Process process({.argv = {YOKE_PROGRAM, "model", "make", "--shape", "llama-3.1-8b", "--format", "bf16", "--layers",
                            "8", "--yes", "made"},
                   .folder = scratch.path()});
  const Deadline deadline = Deadline::after(60_s);
  while (entries().empty() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(entries().size(), 1U) << "the folder under its temporary name";
  EXPECT_FALSE(entries().contains("made"));
  kill(process.pid(), SIGINT);
  const auto outcome = process.wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->exit_status, 130) << outcome->err;
  EXPECT_NE(outcome->err.find("what was written of it is removed"), std::string::npos) << outcome->err;
  EXPECT_TRUE(entries().empty());
}

// A disk of its own, as small as asked for, where the system lets us mount one.
Outcome on_small_disk(const fs::path& folder, const std::string& limits, const std::string& script) {
  return run(
      {.argv = {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                fmt::format("mount -t tmpfs -o {} disk . && cd \"$PWD\" || exit 98; {}", limits, script), YOKE_PROGRAM},
       .folder = folder});
}

TEST_F(ModelCommands, AFullDiskIsReportedBeforehand) {
  const Outcome outcome = on_small_disk(scratch.path(), "size=4m",
                                        "\"$0\" model make --shape nano --format bf16 made; s=$?; ls -A; exit $s");
  if (outcome.exit_status == 98) GTEST_SKIP() << "no file system can be mounted here: " << outcome.err;
  EXPECT_EQ(outcome.exit_status, 9);
  EXPECT_NE(outcome.err.find("made needs 13.1 MiB, but its disk has 4 MiB left"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

// 4.3 GB. Nothing is written before a yes.
const std::vector<std::string> kLargeModel = {"model", "make",     "--shape", "llama-3.1-8b", "--format",
                                              "bf16",  "--layers", "5",       "made"};

TEST_F(ModelCommands, ALargeModelIsNotWrittenWhereNobodyCanBeAsked) {
  if (fs::space(scratch.path()).available < 6'000'000'000) GTEST_SKIP() << "less than 6 GB are free";
  const Outcome outcome = yoke(kLargeModel);
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_THAT(outcome.err, testing::ContainsRegex("this writes [34][0-9.]* GiB to made; [0-9.]+ [GT]iB free there"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("--yes to write it"));
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST_F(ModelCommands, ALargeModelIsWrittenOnlyAfterAYesAtTheTerminal) {
  if (fs::space(scratch.path()).available < 6'000'000'000) GTEST_SKIP() << "less than 6 GB are free";
  Terminal terminal(scratch.path(), kLargeModel);
  ASSERT_TRUE(terminal.shows("free there? [y/N] ")) << terminal.screen();
  terminal.type("n\n");
  EXPECT_TRUE(terminal.shows("Nothing was written.")) << terminal.screen();
  EXPECT_EQ(terminal.exit_status(), 0);
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST_F(ModelCommands, CtrlCAtTheQuestionIsAnInterruptAndNotAnAnswer) {
  if (fs::space(scratch.path()).available < 6'000'000'000) GTEST_SKIP() << "less than 6 GB are free";
  Terminal terminal(scratch.path(), kLargeModel);
  ASSERT_TRUE(terminal.shows("free there? [y/N] ")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 130) << terminal.screen();
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST_F(ModelCommands, ADiskThatFillsWhileWritingLeavesNothing) {
  // There is room for the bytes, but not for that many files: what the look beforehand cannot see.
  const Outcome outcome =
      on_small_disk(scratch.path(), "size=64m,nr_inodes=9",
                    "\"$0\" model make --shape nano --format bf16 --shard-size 2MB made; s=$?; ls -A; exit $s");
  if (outcome.exit_status == 98) GTEST_SKIP() << "no file system can be mounted here: " << outcome.err;
  EXPECT_EQ(outcome.exit_status, 9);
  EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("what was written of it is removed"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("make room"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST_F(ModelCommands, TokensAreThoseOfTheGoldens) {
  const std::string folder = kSourceFolder / "tests/golden/tokenizer";
  const Document cases = parse_json(read_file(fs::path(folder) / "golden.json"), "golden.json");
  ASSERT_GT(cases.items.size(), 5U);
  for (const Document& one : cases.items) {
    const std::string text = one.find("text")->text;
    EXPECT_EQ(*json({"tokenize", folder, "--special"}, text).find("ids"), *one.find("ids")) << text;
    EXPECT_EQ(*json({"tokenize", folder, "--special", "--no-special-tokens"}, text).find("ids"),
              *one.find("ids_without_special"));
  }
  const Document chats = parse_json(read_file(fs::path(folder) / "chat_golden.json"), "chat_golden.json");
  for (const Document& one : chats.items) {
    const Document out = json({"tokenize", folder, "--messages"}, print_json(*one.find("messages")));
    EXPECT_EQ(*out.find("ids"), *one.find("ids"));
    EXPECT_EQ(out.find("text")->text, one.find("text")->text);
  }
  EXPECT_EQ(*json({"tokenize", folder, "--chat", "Hi"}).find("ids"), *chats.items.front().find("ids"));
}

TEST_F(ModelCommands, TokenizeTakesTextsAndPrintsTablesIdsAndTextsBack) {
  const Outcome table = yoke({"tokenize", kNanoFolder, "Which cable"});
  EXPECT_NE(table.out.find("Ġcable"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("special\n"), std::string::npos);
  EXPECT_NE(table.out.find("\n3 tokens\n"), std::string::npos);
  const std::string ids = yoke({"tokenize", kNanoFolder, "--ids"}, "Which cable").out;
  EXPECT_EQ(ids, "2043,669,636\n");
  EXPECT_EQ(yoke({"tokenize", kNanoFolder, "--decode", ids.substr(0, ids.size() - 1)}).out, "<|begin|>Which cable\n");
  EXPECT_EQ(yoke({"tokenize", kNanoFolder, "", "--ids"}).out, "2043\n");
  EXPECT_EQ(yoke({"tokenize", kNanoFolder, "", "--ids", "--no-special-tokens"}).out, "\n");
  EXPECT_EQ(yoke({"tokenize", kNanoFolder + "/tokenizer.json", "Which cable", "--ids"}).out, ids);
  EXPECT_EQ(yoke({"tokenize", kNanoFolder, "<|end|>", "--ids", "--no-special-tokens", "--special"}).out, "2044\n");
}

struct ModelMistake {
  const char* name;
  std::vector<std::string> arguments;
  int exit_status;
  const char* message;
  const char* hint;
  const char* input = "";
};
class ModelMistakes : public ModelCommands, public testing::WithParamInterface<ModelMistake> {};
TEST_P(ModelMistakes, GetOneClearErrorWithAHint) {
  fs::create_directory(scratch.path() / "full");
  fs::create_directory(scratch.path() / "empty");
  write_file_atomically(scratch.path() / "full/config.json", R"({"architectures": ["GPT2LMHeadModel"]})");
  const Outcome outcome = yoke(GetParam().arguments, GetParam().input);
  EXPECT_EQ(outcome.exit_status, GetParam().exit_status) << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().message), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().hint), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(entries(), (std::set<std::string>{"empty", "full"}));
}
INSTANTIATE_TEST_SUITE_P(
    Lines, ModelMistakes,
    testing::Values(
        ModelMistake{"MistypedShape",
                     {"model", "make", "--shape", "llama-3.2-1", "--format", "bf16", "x"},
                     2,
                     "--shape cannot be 'llama-3.2-1'",
                     "did you mean 'llama-3.2-1b'?"},
        ModelMistake{"UnknownFormat",
                     {"model", "make", "--shape", "nano", "--format", "int4", "x"},
                     2,
                     "--format cannot be 'int4'",
                     "w4a16"},
        ModelMistake{"NoShape", {"model", "make", "--format", "bf16", "x"}, 2, "needs --shape", "yoke model shapes"},
        ModelMistake{"NoFormat", {"model", "make", "--shape", "nano", "x"}, 2, "needs --format", "w4a16"},
        ModelMistake{"NoFolder", {"model", "make", "--shape", "nano", "--format", "bf16"}, 2, "needs DIR", "folder"},
        ModelMistake{"FullFolder",
                     {"model", "make", "--shape", "nano", "--format", "bf16", "full"},
                     10,
                     "is there already, and is not empty",
                     "nothing is overwritten"},
        ModelMistake{"NoParent",
                     {"model", "make", "--shape", "nano", "--format", "bf16", "a/b"},
                     5,
                     "there is no folder",
                     "mkdir -p"},
        ModelMistake{"NegativeLayers",
                     {"model", "make", "--shape", "nano", "--format", "bf16", "--layers", "-1", "x"},
                     2,
                     "--layers cannot be -1",
                     "1 to"},
        ModelMistake{"ShardWithoutUnit",
                     {"model", "make", "--shape", "nano", "--format", "bf16", "--shard-size", "5", "x"},
                     2,
                     "'5' is not a size",
                     "unit"},
        ModelMistake{"TinyShard",
                     {"model", "make", "--shape", "nano", "--format", "bf16", "--shard-size", "5kB", "x"},
                     2,
                     "a shard of",
                     "1MB or more"},
        ModelMistake{"NoDisk",
                     {"model", "make", "--shape", "llama-3.1-405b", "--format", "f32", "--layers", "500", "x"},
                     9,
                     "but its disk has",
                     "fewer layers"},
        ModelMistake{"NothingToGrow",
                     {"model", "grow", "none", "x", "--layers", "9"},
                     5,
                     "there is no model folder 'none'",
                     "config.json"},
        ModelMistake{
            "GrowWithoutAim", {"model", "grow", kNanoFolder, "x"}, 2, "either --layers or --size", "--size 2GB"},
        ModelMistake{"GrowWithBoth",
                     {"model", "grow", kNanoFolder, "x", "--layers", "9", "--size", "1GB"},
                     2,
                     "either --layers or --size",
                     "--layers 64"},
        ModelMistake{
            "GrowToFewer", {"model", "grow", kNanoFolder, "x", "--layers", "8"}, 4, "it cannot be grown to 8", "9 to"},
        ModelMistake{"GrowToLess", {"model", "grow", kNanoFolder, "x", "--size", "1MB"}, 4, "already", "larger size"},
        ModelMistake{"GrowIntoItself",
                     {"model", "grow", kNanoFolder, kNanoFolder + "/x", "--layers", "9"},
                     10,
                     "inside the model's folder",
                     "elsewhere"},
        ModelMistake{"ShowNothing", {"model", "show", "none"}, 5, "there is no model folder 'none'", "nano"},
        ModelMistake{"ShowEmpty", {"model", "show", "empty"}, 4, "it holds no config.json", "Hugging Face"},
        ModelMistake{"ShowNoWeights", {"model", "show", "full"}, 5, "holds neither model.safetensors", "fetch"},
        ModelMistake{"TokenizeNothing", {"tokenize", "none", "x"}, 5, "there is no model folder 'none'", "nano"},
        ModelMistake{"NoTokenizer", {"tokenize", "empty", "x"}, 5, "empty has no tokenizer", "fetch"},
        ModelMistake{"NoUtf8", {"tokenize", kNanoFolder}, 4, "not UTF-8: byte 2 (0xff)", "iconv", "ab\xff"},
        ModelMistake{"UnknownId", {"tokenize", kNanoFolder, "--decode", "1,99999"}, 4, "no token 99999", "0 to 2047"},
        ModelMistake{"NegativeId", {"tokenize", kNanoFolder, "--decode=-1"}, 4, "no token -1", "0 to 2047"},
        ModelMistake{"NoId", {"tokenize", kNanoFolder, "--decode", "one"}, 2, "'one' is not a token's id", "1,2,3"},
        ModelMistake{
            "DecodeAndText", {"tokenize", kNanoFolder, "--decode", "1", "x"}, 2, "do not go together", "--help"},
        ModelMistake{
            "MessagesNoJson", {"tokenize", kNanoFolder, "--messages"}, 4, "standard input is not JSON", "", "Hi"},
        ModelMistake{"MessagesNoList", {"tokenize", kNanoFolder, "--messages"}, 4, "not a list", "\"role\"", "{}"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace yoke::tests
