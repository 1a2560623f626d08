// One prompt, as a person or a script gives it, over ranks of every kind, with deaths and interrupts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <thread>

#include "tests/engine_fixture.h"
#include "tests/long_run.h"
#include "tests/mistake.h"
#include "yoke/base/fields.h"
#include "yoke/weights/safetensors_file.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;
using testing::StartsWith;

struct Run : EngineTest {};

TEST_F(Run, AnswersAQuestionOnStandardOutputAndCountsOnStandardError) {
  const Outcome outcome = yoke({"run", kNano, "-p", kQuestion});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, kAnswer + "\n");
  EXPECT_THAT(outcome.err, HasSubstr("yoke: prompt: 10 tokens, "));
  EXPECT_THAT(outcome.err, HasSubstr("answer: 26 tokens, "));
  EXPECT_EQ(yoke({"run", kNano, "-q"}, kQuestion + "\n").out, kAnswer + "\n") << "the prompt may come by a pipe";
  EXPECT_EQ(yoke({"run", kNano, "-q", "-p", kQuestion}).err, "");
}

// What a viewer opens: rank by rank, slices that lie inside of each other, layers among them.
TEST_F(Run, WritesATraceOfAllRanks) {
  const fs::path file = scratch.path() / "trace.json";
  const Document reported = yoke_json({"run", kNano, "-p", kQuestion, "--ranks", "2", "--trace", file});
  EXPECT_EQ(reported.find("text")->text, kAnswer) << "a trace changes no answer";
  const Document& summary = *reported.find("trace");
  ASSERT_EQ(summary.find("ranks")->items.size(), 2U);
  for (const Document& rank : summary.find("ranks")->items) {
    const double steps = from_json<double>(*rank.find("steps_seconds"));
    double parts = 0;
    for (const char* part : {"compute_seconds", "waiting_seconds", "transfer_seconds"}) {
      parts += from_json<double>(*rank.find(part));
    }
    EXPECT_GT(from_json<double>(*rank.find("compute_seconds")), 0);
    EXPECT_LE(parts, steps * 1.001);
    EXPECT_LT(from_json<double>(*rank.find("clock_error_seconds")), 1);
  }
  const Document trace = parse_json(read_file(file), "the trace");
  std::map<std::string, int> kinds;
  std::map<std::string, std::vector<double>> ends;  // of the slices that are open, by rank
  for (const Document& event : trace.find("traceEvents")->items) {
    if (event.find("ph")->text != "X") continue;
    ++kinds[event.find("cat")->text];
    std::vector<double>& open = ends[event.find("pid")->text];
    const double begin = from_json<double>(*event.find("ts"));
    const double end = begin + from_json<double>(*event.find("dur"));
    while (!open.empty() && open.back() <= begin + 0.002) open.pop_back();
    if (!open.empty()) EXPECT_LE(end, open.back() + 0.002) << "a slice that leaves the one around it";
    open.push_back(end);
  }
  for (const char* kind : {"step", "layer", "compute", "exchange", "transfer"}) EXPECT_GT(kinds[kind], 0) << kind;
  EXPECT_EQ(ends.size(), 2U);
}

struct Ranks {
  const char* name;
  std::vector<std::string> arguments;
  const char* transport;
};
class RunRanks : public EngineTest, public testing::WithParamInterface<Ranks> {};
TEST_P(RunRanks, SayTheSameAsOne) {
  if (GetParam().name == std::string("Mpi")) {
    if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  }
  std::vector<std::string> arguments = {"run", kNano, "-p", kQuestion};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const Document reported = yoke_json(arguments);
  EXPECT_EQ(reported.find("text")->text, kAnswer);
  EXPECT_EQ(reported.find("finish")->text, "stop");
  EXPECT_EQ(reported.find("prompt_tokens")->text, "10");
  EXPECT_EQ(reported.find("tokens")->items.size(), 26U);
  EXPECT_THAT(reported.find("transport")->text, StartsWith(GetParam().transport));
  const auto ranks = from_json<std::size_t>(*reported.find("ranks"));
  EXPECT_EQ(reported.find("nodes")->items.size(), ranks);
  EXPECT_EQ(reported.find("weights_bytes_each")->items.size(), ranks);
  EXPECT_TRUE(reported.find("recoveries")->items.empty());
  EXPECT_GT(from_json<double>(*reported.find("decode_tokens_per_second")), 0);
}
INSTANTIATE_TEST_SUITE_P(Kinds, RunRanks,
                         testing::Values(Ranks{"One", {}, "direct: one rank alone"},
                                         Ranks{"Threads", {"--ranks", "4", "--transport", "threads"}, "local"},
                                         Ranks{"Two", {"--ranks", "2"}, "direct"},
                                         Ranks{"Three", {"--ranks", "3", "--threads", "1"}, "direct"},
                                         Ranks{"Four", {"--ranks", "4", "--threads", "1"}, "direct"},
                                         Ranks{"Mpi", {"--ranks", "2", "--transport", "mpi"}, "mpi"}),
                         [](const auto& kind) { return kind.param.name; });

TEST_F(Run, RanksThatMpirunStartedAnswerOnce) {
  if (const auto why = why_no_mpi()) GTEST_SKIP() << *why;
  const Outcome outcome = mpirun(2, {"run", kNano, "-p", kQuestion});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, kAnswer + "\n");
  EXPECT_THAT(outcome.err, HasSubstr("2 ranks"));
  const Outcome staged = mpirun(3, {"run", kNano, "-p", kQuestion});
  EXPECT_EQ(staged.out, kAnswer + "\n") << "layers are cut where heads cannot be: " << staged.err;
  const Outcome wrong = mpirun(2, {"run", "/no/model", "--ids", "1"});
  EXPECT_NE(wrong.exit_status, 0);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr("/no/model"));
}

TEST_F(Run, TheSameSeedDrawsTheSameTokensOnAnyNumberOfRanks) {
  // Without --exact activations are rounded, and what is rounded depends on the split.
  const std::vector<std::string> base = {"run", kNano, "-p",     "Tell me about MTU", "--temperature", "8",
                                         "-n",  "30",  "--exact"};
  const auto tokens = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return *yoke_json(arguments).find("tokens");
  };
  const Document one = tokens({"--seed", "18446744073709551615"});
  EXPECT_EQ(tokens({"--seed", "18446744073709551615", "--ranks", "2", "--transport", "threads"}), one);
  EXPECT_NE(tokens({"--seed", "2"}), one);
}

TEST_F(Run, StopsBeforeAStopTextAndNeverShowsPartOfIt) {
  const Document reported = yoke_json({"run", kNano, "-p", kQuestion, "--stop", "direct-attach"});
  EXPECT_EQ(reported.find("text")->text, "One QSFP cable (200G ");
  EXPECT_EQ(reported.find("finish")->text, "stop");
  EXPECT_EQ(yoke_json({"run", kNano, "-p", kQuestion, "-n", "3"}).find("finish")->text, "length");
}

TEST_F(Run, LogitsOfThePromptAreWrittenWholeOrNotAtAll) {
  const fs::path file = scratch.path() / "logits.safetensors";
  const Document golden_text = parse_json(read_file(kNano + "/golden.json"), "golden.json");
  const auto ids = from_json<std::vector<int>>(*golden_text.find("cases")->items.at(0).find("ids"));
  const std::vector<std::string> line = {
      "run",     kNano,      "--ids", fmt::format("{}", fmt::join(ids.begin(), ids.begin() + 5, ",")), "-n", "0",
      "--exact", "--logits", file};
  ASSERT_EQ(yoke(line).exit_status, 0);
  const weights::SafetensorsFile logits(file);
  const weights::TensorEntry* entry = logits.find("logits");
  ASSERT_NE(entry, nullptr);
  const tensor::Tensor ours = logits.view(*entry).copied();
  EXPECT_EQ(ours.shape(), (tensor::Shape{5, 2048}));
  const weights::SafetensorsFile golden(kNano + "/golden.safetensors");  // of a prompt that begins so
  const tensor::Tensor theirs = golden.view(*golden.find("logits.0")).copied();
  for (std::int64_t i = 0; i < ours.count(); ++i) {
    ASSERT_NEAR(ours.data<float>()[i], theirs.data<float>()[i], 2e-3) << i;
  }
  const Outcome again = yoke(line);
  EXPECT_EQ(again.exit_status, 10) << "an existing file stays";
  EXPECT_THAT(again.err, HasSubstr("exists already"));
}

TEST_F(Run, LogprobsAreReportedForEachToken) {
  const Document reported = yoke_json({"run", kNano, "-p", kQuestion, "-n", "4", "--logprobs", "2"});
  ASSERT_EQ(reported.find("logprobs")->items.size(), 4U);
  for (const Document& token : reported.find("logprobs")->items) {
    ASSERT_EQ(token.find("top")->items.size(), 2U);
    EXPECT_EQ(*token.find("top")->items[0].find("id"), *token.find("id")) << "the likeliest is taken";
    EXPECT_LE(from_json<double>(*token.find("logprob")), 0);
  }
}

TEST_F(Run, IdsNeedNoTokenizer) {
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
    fs::create_symlink(fs::path(kNano) / name, scratch.path() / name);
  }
  const Outcome outcome = yoke({"run", ".", "--ids", "2043,2045", "-n", "2"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::MatchesRegex("[0-9]+ [0-9]+\n"));
  const Outcome text = yoke({"run", ".", "-p", "x"});
  EXPECT_EQ(text.exit_status, 5);
  EXPECT_THAT(text.err, HasSubstr("there is no tokenizer.json in '"));
  EXPECT_THAT(text.err, HasSubstr("--ids"));
}

TEST_F(Run, ATemplateOrTokenizerThatWeCannotReadStopsOnlyWhoNeedsIt) {
  const fs::path model = scratch.path() / "model";
  fs::copy(kNano, model);
  write_file_atomically(model / "chat_template.jinja", "{% include 'x' %}");
  const Outcome refused = yoke({"run", "model", "-p", "Hi"});
  EXPECT_EQ(refused.exit_status, 11) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("the statement 'include' is not supported"));
  EXPECT_THAT(refused.err, HasSubstr("--raw"));
  EXPECT_EQ(yoke({"chat", "model"}, "Hi\n").exit_status, 11);
  const Outcome raw = yoke({"run", "model", "-p", "MTU 9000", "--raw", "-n", "3"});
  EXPECT_EQ(raw.exit_status, 0) << raw.err;
  EXPECT_EQ(yoke({"run", "model", "--ids", "5,6", "-n", "3"}).exit_status, 0);
  write_file_atomically(model / "tokenizer.json", R"({"model": {"type": "Unigram", "vocab": []}})");
  EXPECT_EQ(yoke({"run", "model", "-p", "Hi", "--raw"}).exit_status, 11);
  const Outcome ids = yoke({"run", "model", "--ids", "5,6", "-n", "3"});
  EXPECT_EQ(ids.exit_status, 0) << ids.err;
  EXPECT_THAT(ids.err, HasSubstr("the answer is printed as ids"));
}

TEST_F(Run, ATemplateThatLoopsForEverIsStopped) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    fs::create_symlink(fs::path(kNano) / name, scratch.path() / name);
  }
  write_file_atomically(scratch.path() / "chat_template.jinja",
                        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}");
  const Outcome outcome = yoke({"run", ".", "-p", "x"});
  EXPECT_EQ(outcome.exit_status, 9);
  EXPECT_THAT(outcome.err, HasSubstr("chat_template.jinja"));
}

class RunMistakes : public EngineTest, public testing::WithParamInterface<Mistake> {};
TEST_P(RunMistakes, GetOneClearErrorAndNoAnswer) {
  const Outcome outcome = yoke(GetParam().arguments);
  expect_clear_error(outcome, GetParam());
  EXPECT_EQ(outcome.out, "");
}
INSTANTIATE_TEST_SUITE_P(
    Lines, RunMistakes,
    testing::Values(
        Mistake{"NoFolder", {"run", "/no/model", "-p", "x"}, 5, "there is no model folder '/no/model'", "config.json"},
        Mistake{"NoModel", {"run", kGolden, "-p", "x"}, 5, "is no model folder", "config.json"},
        Mistake{"NoPrompt", {"run", kNano}, 4, "the prompt is empty", "yoke run -p"},
        Mistake{"NotUtf8", {"run", kNano, "-p", "a\xff"}, 4, "the prompt is not UTF-8: byte 2 of 2", "iconv"},
        Mistake{"MoreRanksThanAnyModelHas",
                {"run", kNano, "-p", "x", "--ranks", "1000"},
                2,
                "--ranks cannot be 1000",
                "1 to 256"},
        Mistake{"NodesWithoutCluster", {"run", kNano, "-p", "x", "--nodes", "2"}, 2, "needs a cluster", "--ranks"},
        Mistake{"ContextTooLong", {"run", kNano, "-p", "x", "--context", "4096"}, 4, "2048 tokens, not for 4096", ""},
        Mistake{"PromptTooLong", {"run", kNano, "-p", "one two three", "--context", "4"}, 4, "room for 4", "--context"},
        Mistake{"TwoPrompts", {"run", kNano, "-p", "x", "--ids", "1"}, 2, "give -p or --ids, not both", "prompt"},
        Mistake{"NoId", {"run", kNano, "--ids", "1,two"}, 2, "'two' is no token id", "commas"},
        Mistake{"IdBeyond", {"run", kNano, "--ids", "99999"}, 4, "the vocabulary has 2048 ids", ""},
        Mistake{
            "TokensBeyond", {"run", kNano, "-p", "x", "-n", "9223372036854775807"}, 2, "is out of range", "2147483647"},
        Mistake{"NoTraceFolder", {"run", kNano, "-p", "x", "--trace", "no/t.json"}, 5, "does not exist", "make"},
        Mistake{"TraceExists", {"run", kNano, "-p", "x", "--trace", "/dev/null"}, 10, "exists already", "another file"},
        Mistake{
            "NoLogitsFolder", {"run", kNano, "-p", "x", "--logits", "no/l.safetensors"}, 5, "does not exist", "make"},
        Mistake{"Temperature", {"run", kNano, "-p", "x", "--temperature", "-1"}, 2, "temperature", ""},
        Mistake{"NoBias", {"run", kNano, "-p", "x", "--logit-bias", "5"}, 2, "'5' is no bias", "42=1.5"},
        Mistake{"LogprobsInText", {"run", kNano, "-p", "x", "--logprobs", "2"}, 2, "only printed in JSON", "--json"},
        Mistake{"UnknownTransport", {"run", kNano, "-p", "x", "--transport", "tcp"}, 2, "cannot be 'tcp'", "direct"},
        Mistake{"ChatNoFolder", {"chat", "/no/model"}, 5, "there is no model folder", "config.json"},
        Mistake{"VerifyNoGolden", {"verify", kNano + "/../../tests/fixtures"}, 5, "is no model folder", "config.json"}),
    [](const auto& test) { return test.param.name; });

TEST_F(Run, MistakesAreReportedBeforeTheModelIsLoaded) {
  for (const char* name : {"config.json", "tokenizer.json"}) {  // the weights would be missed next
    fs::create_symlink(fs::path(kNano) / name, scratch.path() / name);
  }
  const auto reported = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line = {"run", "."};
    line.insert(line.end(), more.begin(), more.end());
    return yoke(line).err;
  };
  EXPECT_THAT(reported({"-p", "one two three", "--context", "4"}), HasSubstr("room for 4"));
  EXPECT_THAT(reported({"--ids", "99999"}), HasSubstr("the vocabulary has 2048 ids"));
  EXPECT_THAT(reported({"-p", "x", "--logit-bias", "99999=1"}), HasSubstr("99999"));
  EXPECT_THAT(reported({"-p", "x"}), HasSubstr("model.safetensors"));
}

TEST_F(Run, APipeThatNobodyWritesToIsNotWaitedFor) {
  ASSERT_EQ(mkfifo((scratch.path() / "config.json").c_str(), 0600), 0);
  const Outcome outcome = yoke({"run", ".", "-p", "x"});
  EXPECT_EQ(outcome.exit_status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("config.json is a named pipe"));
}

TEST_F(Run, AnUnknownArchitectureListsTheKnown) {
  write_file_atomically(scratch.path() / "config.json",
                        R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"]})");
  for (const char* name : {"tokenizer.json", "model.safetensors"}) {
    fs::create_symlink(fs::path(kNano) / name, scratch.path() / name);
  }
  for (const char* ranks : {"1", "2"}) {
    const Outcome outcome = yoke({"run", ".", "-p", "x", "--ranks", ranks});
    EXPECT_EQ(outcome.exit_status, 11) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("LlamaForCausalLM"));
    EXPECT_THAT(outcome.err, HasSubstr("config.json: yoke does not know"));
  }
}

// ---- deaths and interrupts

struct Death {
  const char* name;
  const char* ranks;
  int victim;
  int signal;
};
class RunDeath : public EngineTest, public testing::WithParamInterface<Death> {};
TEST_P(RunDeath, OfARankInMidAnswerChangesNoToken) {
  LongRun undisturbed(scratch.path(), {"--ranks", GetParam().ranks, "--json"});
  const auto whole = undisturbed.process->wait(Deadline::after(120_s));
  ASSERT_TRUE(whole && whole->ok()) << whole->err;
  LongRun run(scratch.path(), {"--ranks", GetParam().ranks});
  std::string text = run.read_until(20);
  const std::vector<pid_t> victims = run.ranks(GetParam().victim);
  ASSERT_EQ(victims.size(), 1U);
  ASSERT_EQ(kill(victims.front(), GetParam().signal), 0);
  text += run.read_until(1 << 20);
  const auto outcome = run.process->wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome && outcome->ok()) << outcome->err;
  EXPECT_EQ(text, parse_json(whole->out, "out").find("text")->text + "\n");
  EXPECT_THAT(outcome->err, HasSubstr("going on after"));
  EXPECT_THAT(outcome->err, HasSubstr("1 recovery"));
}
INSTANTIATE_TEST_SUITE_P(EachRank, RunDeath,
                         testing::Values(Death{"TheOnlyRank", "1", 0, SIGKILL}, Death{"Rank0", "2", 0, SIGKILL},
                                         Death{"Rank1", "2", 1, SIGKILL}, Death{"TheOnlyRankStopped", "1", 0, SIGSTOP},
                                         Death{"Rank1Stopped", "2", 1, SIGSTOP}),
                         [](const auto& death) { return death.param.name; });

TEST_F(Run, ANewcomerThatFindsAnotherModelEndsTheAnswer) {
  const fs::path model = scratch.path() / "nano";
  fs::copy(kNano, model);
  std::string other = read_file(model / "model.safetensors", Bytes{1 << 30});
  for (std::size_t at = other.size() / 2; at < other.size(); ++at) other[at] ^= 1;  // other weights of the same shape
  LongRun run(scratch.path(), {"--ranks", "2"}, model);
  run.read_until(20);
  write_file_atomically(model / "model.safetensors", other);
  const std::vector<pid_t> victims = run.ranks(1);
  ASSERT_EQ(victims.size(), 1U);
  ASSERT_EQ(kill(victims.front(), SIGKILL), 0);
  run.read_until(1 << 20);
  const auto outcome = run.process->wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 10) << outcome->err;
  EXPECT_THAT(outcome->err, HasSubstr("rank 1 holds another model than rank 0"));
  EXPECT_THAT(outcome->err, HasSubstr("start again"));
}

TEST_F(Run, ANewcomerWhoseFilesAreMissingForAMomentTriesAgain) {
  const fs::path model = scratch.path() / "nano";
  fs::copy(kNano, model);
  LongRun run(scratch.path(), {"--ranks", "2"}, model);
  run.read_until(20);
  fs::rename(model / "config.json", model / "elsewhere");
  const std::vector<pid_t> victims = run.ranks(1);
  ASSERT_EQ(victims.size(), 1U);
  ASSERT_EQ(kill(victims.front(), SIGKILL), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  fs::rename(model / "elsewhere", model / "config.json");
  run.read_until(1 << 20);
  const auto outcome = run.process->wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 0) << outcome->err;
  EXPECT_THAT(outcome->err, HasSubstr("1 recovery"));
}

TEST_F(Run, CtrlCEndsEverythingAndTheTextSoFarStays) {
  for (const std::vector<std::string>& ranks :
       {std::vector<std::string>{}, {"--ranks", "2"}, {"--ranks", "2", "--transport", "threads"}}) {
    LongRun run(scratch.path(), ranks);
    EXPECT_THAT(run.read_until(10), StartsWith("One QSFP"));
    ASSERT_EQ(kill(run.process->pid(), SIGINT), 0);
    const auto outcome = run.process->wait(Deadline::after(20_s));
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->exit_status, 130) << outcome->err;
    EXPECT_TRUE(run.ranks().empty());
  }
}

// ---- a lab

class RunInALab : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
    lab_.emplace();
  }
  std::optional<TestLab> lab_;
};

TEST_F(RunInALab, EveryNodeHoldsAPartAndADeadRankComesBack) {
  // Where nodes see it, wherever the repository is: each has a /tmp of its own.
  const ScratchDir seen("yoke-run-test", "/var/tmp");
  const std::string model = seen.path() / "nano";
  fs::copy(kNano, model);
  const std::vector<std::string> line = {"run", model, "-p", kQuestion, "--threads", "1"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = line;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Outcome two = lab_->yoke(with({"--json"}));
  ASSERT_TRUE(two.ok()) << two.err;
  const Document reported = parse_json(two.out, "out");
  EXPECT_EQ(reported.find("text")->text, kAnswer);
  EXPECT_EQ(from_json<std::vector<std::string>>(*reported.find("nodes")),
            (std::vector<std::string>{"spark-1", "spark-2"}));
  EXPECT_THAT(reported.find("transport")->text, HasSubstr("tcp over"));
  const Document one = parse_json(lab_->yoke(with({"--json", "--nodes", "1"})).out, "out");
  EXPECT_EQ(*one.find("tokens"), *reported.find("tokens"));
  EXPECT_EQ(from_json<std::vector<std::string>>(*one.find("nodes")), (std::vector<std::string>{"spark-1"}));
  EXPECT_EQ(lab_->yoke(with({"--nodes", "3"})).exit_status, 2);

  Process process({.argv = {YOKE_PROGRAM, "run", model, "-p", kQuestion, "--threads", "1", "--logit-bias", "2044=-inf",
                            "-n", "150"},
                   .folder = lab_->folder});
  // Killed in mid-answer: after its first words, of some hundred.
  EXPECT_NE(process.read_bytes(OutputStream::kOut, 64, Deadline::after(60_s)), "");
  EXPECT_TRUE(lab_->exec("2", {"pkill", "-KILL", "-f", "yoke rank engine"}).ok());
  const auto outcome = process.wait(Deadline::after(90_s));
  ASSERT_TRUE(outcome && outcome->ok()) << outcome->err;
  EXPECT_THAT(outcome->err, HasSubstr("1 recovery"));
  EXPECT_THAT(outcome->err, HasSubstr("answer: 150 tokens"));
}

TEST_F(RunInALab, TakesTheShippedModelFromAnyFolderAndReportsThatTheGpuIsIdle) {
  const Outcome outcome = lab_->yoke({"run", "-p", kQuestion});
  EXPECT_EQ(outcome.out, kAnswer + "\n") << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("but the model runs on the CPU (cpu"));
  const Outcome missing = lab_->yoke({"run", "nosuch", "-p", kQuestion});
  EXPECT_EQ(missing.exit_status, 5);
  EXPECT_THAT(missing.err, HasSubstr("there is no model folder 'nosuch' in this folder"));
}

TEST_F(RunInALab, ANodeThatHasNoModelOrAnotherIsNamed) {
  // Below /tmp, which each node has for itself.
  const ScratchDir seen("yoke-run-test", "/var/tmp");
  fs::copy(kNano, seen.path() / "nano");
  const std::vector<std::string> line = {"run", "/tmp/nano", "-p", kQuestion};
  const Outcome nowhere = lab_->yoke(line);
  EXPECT_EQ(nowhere.exit_status, 5) << nowhere.err;
  EXPECT_THAT(nowhere.err, HasSubstr("there is no model folder '/tmp/nano' on spark-1"));
  EXPECT_THAT(nowhere.err, HasSubstr("has a /tmp"));
  EXPECT_THAT(lab_->yoke({"launch", "./mine.yaml", "m"}).err, HasSubstr("nodes have /tmp of their own"));

  const auto copy_to = [&](const char* node) {
    return lab_->exec(node, {"cp", "-r", seen.path() / "nano", "/tmp/nano"}).ok();
  };
  ASSERT_TRUE(copy_to("1"));
  const Outcome lacking = lab_->yoke(line);
  EXPECT_EQ(lacking.exit_status, 5) << lacking.err;
  EXPECT_THAT(lacking.err, HasSubstr("on spark-2 (rank 1)"));

  std::string other = read_file(seen.path() / "nano/model.safetensors", Bytes{1 << 30});
  for (std::size_t at = other.size() / 2; at < other.size(); ++at) other[at] ^= 1;
  write_file_atomically(seen.path() / "nano/model.safetensors", other);
  ASSERT_TRUE(copy_to("2"));
  const Outcome differing = lab_->yoke(line);
  EXPECT_EQ(differing.exit_status, 10) << differing.err;
  EXPECT_EQ(differing.out, "");
  EXPECT_THAT(differing.err, HasSubstr("spark-2 holds another model than spark-1"));
}

}  // namespace
}  // namespace yoke::tests
