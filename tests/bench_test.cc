// yoke bench as a person or a script meets it: tables that scripts for nccl-tests read, files, the history, mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <regex>

#include "tests/mistake.h"
#include "tests/program.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/report/well_formed_testing.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;

struct InScratch : testing::Test {
  ScratchDir scratch;
  std::map<std::string, std::string> environment = {{"XDG_DATA_HOME", scratch.path() / "data"}};

  InScratch() { fs::create_directory(scratch.path() / "data"); }
  Command command(std::vector<std::string> arguments = {}) const {
    return {.argv = std::move(arguments), .environment = environment, .folder = scratch.path(), .timeout = 60_s};
  }
  Outcome bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "bench");
    return run_yoke(std::move(arguments), command());
  }
};
struct Bench : InScratch {};

// What scripts do with nccl-tests: every line that does not begin with '#' is a row of blank-separated columns.
std::vector<std::vector<std::string>> table_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, ' ')) {
      if (!cell.empty()) cells.push_back(cell);
    }
    rows.push_back(cells);
  }
  return rows;
}

const std::vector<std::pair<std::string, std::string>> kCollectives = {
    {"all-reduce", "all_reduce_perf"}, {"all-gather", "all_gather_perf"}, {"reduce-scatter", "reduce_scatter_perf"},
    {"broadcast", "broadcast_perf"},   {"reduce", "reduce_perf"},         {"gather", "gather_perf"},
    {"scatter", "scatter_perf"},       {"all-to-all", "alltoall_perf"},   {"send-receive", "sendrecv_perf"}};

TEST_F(Bench, PrintsTheTableOfNcclTestsForEachCollective) {
  for (const auto& [name, program] : kCollectives) {
    const Outcome outcome = bench({name, "-b", "1K", "-e", "4K", "-f", "2", "-n", "3", "--ranks", "3"});
    ASSERT_EQ(outcome.exit_status, 0) << name << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("# Collective test starting: " + program + "\n"));
    EXPECT_THAT(outcome.out, HasSubstr("# Transport: direct: memory among ranks 0, 1, 2"));
    EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK\n"));
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex("# Avg bus bandwidth    : [0-9.e-]+ \n"))) << outcome.out;
    const auto rows = table_rows(outcome.out);
    ASSERT_EQ(rows.size(), 3U) << outcome.out;
    for (const auto& row : rows) {
      ASSERT_EQ(row.size(), 13U) << name;
      EXPECT_EQ(row[8], "0") << "#wrong";
    }
  }
}

TEST_F(Bench, TakesTheNamesAndOptionsOfNcclTests) {
  const Outcome outcome = bench({"all_reduce_perf",
                                 "--minbytes",
                                 "8",
                                 "--maxbytes",
                                 "1.5K",
                                 "--stepfactor",
                                 "8",
                                 "-g",
                                 "3",
                                 "-w",
                                 "5",
                                 "-n",
                                 "4",
                                 "-m",
                                 "2",
                                 "-c",
                                 "1",
                                 "-o",
                                 "max",
                                 "-d",
                                 "half",
                                 "-z",
                                 "1",
                                 "-a",
                                 "3",
                                 "-G",
                                 "1",
                                 "-R",
                                 "1",
                                 "-S",
                                 "1"});
  ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# nThread 1 nGpus 3 minBytes 8 maxBytes 1536 step: 8(factor) warmup iters: 5 "
                                     "iters: 4 agg iters: 2 validation: 1 graph: 0 unalign: 0\n# Blocking Enabled: "));
  EXPECT_THAT(outcome.out, HasSubstr("#  Rank  2 Group  0 Pid"));
  EXPECT_THAT(outcome.out, HasSubstr("# Note: -G is ignored: no GPU is used\n"));
  ASSERT_EQ(table_rows(outcome.out).size(), 3U);
  EXPECT_EQ(table_rows(outcome.out)[0][2], "half");
  EXPECT_EQ(table_rows(outcome.out)[0].size(), 15U) << "with date and time";
}

TEST_F(Bench, WritesFilesAndNeverOverwrites) {
  const std::vector<std::string> arguments = {"all-reduce", "-b",    "1K",      "-e",     "4K",     "-f",
                                              "2",          "-n",    "3",       "-I",     "1",      "-J",
                                              "out.json",   "--csv", "out.csv", "--plot", "out.svg"};
  EXPECT_THAT(bench(arguments).out, HasSubstr("# Writing JSON output to out.json\n"));
  EXPECT_THAT(bench(arguments).out, HasSubstr("# Writing JSON output to out.json.0\n"));
  const Document json = parse_json(read_file(scratch.path() / "out.json"), "out.json");
  EXPECT_EQ(json.find("results")->items.size(), 3U);
  EXPECT_EQ(json.find("args")->items.at(2).text, "all-reduce");
  EXPECT_TRUE(json.find("env")->items.empty());
  EXPECT_EQ(split(read_file(scratch.path() / "out.csv"), '\n').size(), 1 + 3 * 2 + 1U);
  const std::string svg = read_file(scratch.path() / "out.svg");
  EXPECT_EQ(report::find_xml_error(svg), std::nullopt);
  const Outcome lost = bench({"all-reduce", "-b", "8", "-e", "8", "-J", "no/folder.json"});
  EXPECT_NE(lost.exit_status, 0);
  EXPECT_EQ(table_rows(lost.out).size(), 1U) << "the table is printed all the same";
}

TEST_F(Bench, JsonHoldsEverything) {
  const Document json = parse_json(bench({"all-reduce", "-b", "64", "-e", "64", "-n", "4", "--json"}).out, "out");
  EXPECT_EQ(json.find("passed")->text, "true");
  EXPECT_EQ(json.find("options")->find("iterations")->text, "4");
  const Document& row = json.find("rows")->items.at(0);
  EXPECT_EQ(row.find("out_of_place")->find("iterations")->items.size(), 2U);
  EXPECT_NE(row.find("out_of_place")->find("stats")->find("p99"), nullptr);
}

TEST_F(Bench, TakesATimeoutOfNothingAndUnits) {
  for (const char* timeout : {"0", "3s", "500ms", "2"}) {
    const Outcome outcome = bench({"all-reduce", "-b", "8", "-e", "8", "-n", "3", "-T", timeout});
    EXPECT_EQ(outcome.exit_status, 0) << timeout << outcome.err;
  }
}

TEST_F(Bench, FailsWhereTheBandwidthIsNotWhatTheScriptWants) {
  environment["NCCL_TESTS_MIN_BW"] = "1e6";
  const Outcome slow = bench({"all-reduce", "-b", "8", "-e", "8"});
  EXPECT_EQ(slow.exit_status, 1);
  EXPECT_THAT(slow.out, HasSubstr(" FAILED\n"));
  environment["NCCL_TESTS_MIN_BW"] = "fast";
  EXPECT_EQ(bench({"all-reduce", "-b", "8", "-e", "8"}).exit_status, 2);
}

TEST_F(Bench, RefusesTheGroupsThatItDoesNotMake) {
  environment["NCCL_TESTS_SPLIT"] = "MOD 2";
  const Outcome outcome = bench({"all-reduce", "-b", "8", "-e", "8"});
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("NCCL_TESTS_SPLIT is set"));
}

TEST_F(Bench, CtrlCEndsAnEndlessRunAndKeepsItsRows) {
  Process process(command({YOKE_PROGRAM, "bench", "all-reduce", "-b", "1K", "-e", "1K", "-N", "0"}));
  while (const auto line = process.read_line(Deadline::after(30_s))) {
    if (!line->text.starts_with("#")) break;  // the first row
  }
  kill(process.pid(), SIGINT);
  const auto outcome = process.wait(Deadline::after(30_s));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->exit_status, 130);
  EXPECT_THAT(outcome->out, HasSubstr("# Avg bus bandwidth"));
  const Document history = parse_json(bench({"history", "--json"}).out, "out");
  EXPECT_THAT(history.find("runs")->items.at(0).find("summary")->text, HasSubstr("ended early"));
}

TEST_F(Bench, MeasuresMemoryMatrixProductsAndScaling) {
  EXPECT_THAT(bench({"memory", "--block", "8M", "--rounds", "2"}).out, HasSubstr("GB/s"));
  const Document memory = parse_json(bench({"memory", "--block", "8M", "--rounds", "2", "--json"}).out, "out");
  EXPECT_GE(memory.find("rates")->items.size(), 2U);
  EXPECT_THAT(bench({"matmul", "--size", "64", "--rounds", "1", "--cores", "1"}).out, HasSubstr("TOPS"));
  const Outcome scaling = bench({"scaling", "--ranks", "1,2,3", "-b", "4K", "-e", "64K", "-f", "16", "-n", "5"});
  EXPECT_EQ(scaling.exit_status, 0) << scaling.err;
  EXPECT_THAT(scaling.out, HasSubstr("100%"));
  const Outcome model = bench({"scaling", "--ranks", "1,2", "-b", "4K", "-e", "4K", "-n", "5", "--model",
                               kSourceFolder / "models" / "nano", "--json"});
  EXPECT_EQ(model.exit_status, 0) << model.err;
  const Document rows = *parse_json(model.out, "out").find("model");
  ASSERT_EQ(rows.items.size(), 2U);
  EXPECT_EQ(rows.items[0].find("efficiency")->text, "1");
  EXPECT_GT(std::stod(rows.items[1].find("decode_tokens_per_second")->text), 0);
  EXPECT_THAT(bench({"history"}).out, HasSubstr("all-reduce at 1, 2, 3 ranks"));
}

TEST_F(Bench, HistoryOfEightProgramsAtOnceIsWhole) {
  std::vector<Process> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back(command({YOKE_PROGRAM, "bench", "all-reduce", "-b", "8", "-e", "8", "-n", "1"}));
  for (Process& writer : writers) {
    const auto outcome = writer.wait(Deadline::after(60_s));
    ASSERT_TRUE(outcome && outcome->ok());
    EXPECT_EQ(outcome->err, "");
  }
  EXPECT_EQ(parse_json(bench({"history", "--json"}).out, "out").find("runs")->items.size(), 8U);
  EXPECT_EQ(bench({"compare", "last-1", "last"}).exit_status, 0);
  const Document compared = parse_json(bench({"compare", "1", "8", "--json"}).out, "out");
  EXPECT_EQ(compared.find("rows")->items.size(), 2U);
}

TEST_F(Bench, AResultOutlivesABrokenOrMissingHistory) {
  const std::vector<std::string> arguments = {"all-reduce", "-b", "8", "-e", "8", "-n", "1"};
  fs::create_directory(scratch.path() / "data/yoke");
  write_file_atomically(scratch.path() / "data/yoke/bench-history.sqlite", "this is not a database, and long enough");
  const Outcome broken = bench(arguments);
  EXPECT_EQ(broken.exit_status, 0);
  EXPECT_THAT(broken.err, HasSubstr("was broken; it is now bench-history.sqlite.corrupt-"));
  EXPECT_THAT(bench({"history"}).out, HasSubstr("all-reduce"));
  environment["XDG_DATA_HOME"] = "/proc/nowhere";
  const Outcome unwritable = bench(arguments);
  EXPECT_EQ(unwritable.exit_status, 0);
  EXPECT_EQ(table_rows(unwritable.out).size(), 1U);
  EXPECT_THAT(unwritable.err, HasSubstr("not in the history"));
}

TEST_F(Bench, NoHistoryKeepsNothing) {
  bench({"all-reduce", "-b", "8", "-e", "8", "-n", "1", "--no-history"});
  EXPECT_THAT(bench({"history"}).out, HasSubstr("Nothing was measured yet"));
}

TEST_F(Bench, AReportReplacesAPageOfBeforeAndNothingElse) {
  bench({"all-reduce", "-b", "8", "-e", "8", "-n", "1"});
  const fs::path page = scratch.path() / "page.html";
  EXPECT_TRUE(bench({"report", "-o", page}).ok());
  EXPECT_TRUE(bench({"report", "-o", page}).ok()) << "its own page of before";
  write_file_atomically(page, "<p>my notes</p>\n");
  const Outcome refused = bench({"report", "-o", page});
  EXPECT_EQ(refused.exit_status, 10) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("is no page of yoke's"));
  EXPECT_EQ(read_file(page), "<p>my notes</p>\n");
}

TEST_F(Bench, ManyMoreRanksThanCoresMustBeMeant) {
  // On one core, so that five ranks are too many wherever this runs.
  const auto bench_on_one_core = [&](const std::vector<std::string>& more) {
    const std::string core = fmt::format("{}", bench::usable_cores().front());
    return run(command(joined(
        {"taskset", "-c", core, YOKE_PROGRAM, "bench", "all-reduce", "-b", "8", "-e", "8", "-n", "1", "--ranks", "5"},
        more)));
  };
  expect_clear_error(bench_on_one_core({}),
                     {"", {}, 2, "at most 4 (4 for each of its 1 cores)", "--oversubscribe allows more"});
  const Outcome meant = bench_on_one_core({"--oversubscribe"});
  EXPECT_EQ(meant.exit_status, 0) << meant.err;
}

TEST_F(Bench, NcclThatIsNotThereIsRefusedOnceBeforeAnyRankIsStarted) {
  environment["YOKE_NCCL"] = "/no/such/libnccl.so";  // so that it is refused where there is a GPU too
  const Outcome outcome = bench({"all-reduce", "--transport", "nccl", "--ranks", "3"});
  EXPECT_EQ(outcome.exit_status, info(ErrorCode::kUnsupported).exit_status) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("yoke: NCCL cannot be measured here: ")) << outcome.err;
  EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err;
}

class BenchMistakes : public InScratch, public testing::WithParamInterface<Mistake> {};
TEST_P(BenchMistakes, GetOneClearErrorWithAHint) {
  const Outcome outcome = bench(GetParam().arguments);
  expect_clear_error(outcome, GetParam());
  EXPECT_EQ(outcome.out, "");
}
INSTANTIATE_TEST_SUITE_P(
    Lines, BenchMistakes,
    testing::Values(
        Mistake{"Alone", {}, 2, "needs a command", "all-reduce"},
        Mistake{"MistypedCommand", {"all-reduc"}, 2, "no command 'all-reduc'", "'all-reduce'"},
        Mistake{"JunkSize", {"all-reduce", "-b", "8X"}, 2, "--minbytes: '8X' is not a size", "1.5M"},
        Mistake{"NegativeSize", {"all-reduce", "-e", "-8"}, 2, "negative size", "1.5M"},
        Mistake{"LeastAboveMost", {"all-reduce", "-b", "1G", "-e", "1M"}, 2, "above the largest", "-b is where"},
        Mistake{"OnlyLeastGiven", {"all-reduce", "-b", "64M"}, 2, "above the largest", "32M unless given"},
        Mistake{"NoSuchType", {"all-reduce", "-d", "double"}, 2, "cannot be 'double'", "bfloat16"},
        Mistake{"NoSuchOp", {"all-reduce", "-o", "prod"}, 2, "cannot be 'prod'", "avg"},
        Mistake{"RootThatIsNoRank", {"reduce", "-r", "7"}, 2, "no rank 7", "0 to 1"},
        Mistake{"RootThatIsNoNumber", {"reduce", "-r", "x"}, 2, "'x' is no rank", "all"},
        Mistake{"NoRanks", {"all-reduce", "--ranks", "0"}, 2, "cannot be 0 ranks", "1 to 256"},
        Mistake{"TooManyRanks", {"all-reduce", "-t", "1000"}, 2, "cannot be 1000 ranks", "1 to 256"},
        Mistake{"IterationsThatAreNoNumber", {"all-reduce", "-n", "many"}, 2, "'many' is not a whole number", ""},
        Mistake{"NoIterations", {"all-reduce", "-n", "0"}, 2, "-n cannot be 0", "at least one"},
        Mistake{"BlockingOutOfRange", {"all-reduce", "-z", "4"}, 2, "--blocking cannot be 4", "0 to 3"},
        Mistake{"ForgottenFactor", {"all-reduce", "-b", "8", "-e", "1G", "-i", "8"}, 2, "rows", "-f 2"},
        Mistake{"WrongFileType", {"all-reduce", "-J", "out.csv"}, 2, "does not end in .json", "--csv"},
        Mistake{"RateWithoutUnit", {"all-reduce", "--link-rate", "100"}, 2, "--link-rate", ""},
        Mistake{"BesideOfAnotherKind",
                {"all-gather", "--compare-with", "mpi"},
                2,
                "compares all-reduce only",
                "leave it out"},
        Mistake{"BesideSocketOfThree",
                {"all-reduce", "--compare-with", "socket", "--ranks", "3"},
                2,
                "between two ranks, not 3",
                "--ranks 2"},
        Mistake{"BesideOfThreads",
                {"all-reduce", "--transport", "threads", "--compare-with", "mpi"},
                2,
                "needs ranks that are processes",
                "leave one"},
        Mistake{"BesideOfOtherMemory",
                {"all-reduce", "--transport", "nccl", "--compare-with", "mpi"},
                2,
                "--compare-with mpi moves memory of processors, --transport nccl that of GPUs",
                "--compare-with nccl"},
        Mistake{
            "BesideMpiOfRails", {"all-reduce", "--compare-with", "mpi", "-d", "half"}, 2, "plain MPI reduces", "-d"},
        Mistake{
            "BesideMpiOfAverages", {"all-reduce", "--compare-with", "mpi", "-o", "avg"}, 2, "plain MPI reduces", "-o"},
        Mistake{"NoRails", {"all-reduce", "--rails", "0"}, 2, "--rails cannot be 0", "at least 1"},
        Mistake{"UnknownOption", {"all-reduce", "--sizes", "8"}, 2, "has no option '--sizes'", ""},
        Mistake{"NegativeTimeout", {"all-reduce", "-T", "-1"}, 2, "--timeout: '-1' is not a time", "500ms"},
        Mistake{"TimeoutOfAnotherUnit", {"all-reduce", "-T", "3x"}, 2, "--timeout: '3x' is not a time", "2min"},
        Mistake{"MemoryBlockTooSmall", {"memory", "--block", "8"}, 2, "--block cannot be 8 bytes", "1M to 64G"},
        Mistake{"MemoryBlockJunk", {"memory", "--block", "big"}, 2, "'big' is not a size", "1.5M"},
        Mistake{"MoreCoresThanThere", {"memory", "--cores", "9999"}, 2, "--cores 9999: there are", "1 to"},
        Mistake{"NegativeRounds", {"matmul", "--rounds", "-1"}, 2, "--rounds cannot be -1", "1 to"},
        Mistake{"MatrixTooLarge", {"matmul", "--size", "100000"}, 2, "--size cannot be 100000", "4096"},
        Mistake{"RanksThatFall", {"scaling", "--ranks", "4,2"}, 2, "do not rise", "1,2,4"},
        Mistake{"RanksOfNothing", {"scaling", "--ranks", ""}, 2, "--ranks", "1,2,4"},
        Mistake{"CompareOne", {"compare", "last"}, 2, "needs B", "compare"},
        Mistake{"CompareNothing", {"compare", "1", "2"}, 5, "no run '1'", "yoke bench history"},
        Mistake{"CompareWords", {"compare", "yesterday", "last"}, 2, "'yesterday' names no run", "last-1"},
        Mistake{"HistoryOfNone", {"history", "--limit", "0"}, 2, "--limit cannot be 0", ""},
        Mistake{"ReportOfNothing", {"report"}, 5, "the history is empty", "measure something first"}),
    [](const auto& test) { return test.param.name; });

// ---- the page in a real browser

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j)
      word = word << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[word >> (18 - 6 * j) & 63U];
  }
  return out;
}

struct BenchReport : InScratch {
  Outcome browse(const std::string& page, const std::string& action) {
    const std::string profile = scratch.path() / ("profile" + std::to_string(++browsers_));
    return run(command({"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                        "--disable-background-networking", "--disable-component-update", "--disable-sync",
                        "--user-data-dir=" + profile, "--enable-logging=stderr", "--v=0", "--window-size=900,1600",
                        action, "file://" + (scratch.path() / page).native()}));
  }

 private:
  int browsers_ = 0;
};

TEST_F(BenchReport, IsShownByARealBrowserWithoutAComplaint) {
  if (!is_installed("chromium")) GTEST_SKIP() << "chromium is not installed";
  environment["HOME"] = scratch.path();
  ASSERT_EQ(bench({"all-reduce", "-b", "8", "-e", "64K", "-f", "8", "-n", "5"}).exit_status, 0);
  ASSERT_EQ(bench({"memory", "--block", "8M", "--rounds", "2"}).exit_status, 0);
  ASSERT_EQ(bench({"report", "-o", "report.html"}).exit_status, 0);
  const Outcome shown = browse("report.html", "--screenshot=" + (scratch.path() / "shot.png").native());
  ASSERT_TRUE(shown.ok()) << shown.describe();
  EXPECT_EQ(shown.err.find(":CONSOLE"), std::string::npos) << shown.err;

  // The picture is decoded by the browser too: how many colours has it? And does a complaint of a page reach us?
  const std::string png = read_file(scratch.path() / "shot.png");
  write_file_atomically(scratch.path() / "count.html",
                        "<body><img id=i src='data:image/png;base64," + base64(png) +
                            "'><script>console.error('heard');onload=()=>{const i=document.getElementById('i'),"
                            "c=document.createElement('canvas');c.width=i.naturalWidth;c.height=i.naturalHeight;"
                            "const x=c.getContext('2d');x.drawImage(i,0,0);const s=new Set(new Uint32Array("
                            "x.getImageData(0,0,c.width,c.height).data.buffer));document.body.textContent="
                            "`size ${c.width}x${c.height} colours ${s.size}.`}</script>");
  const Outcome counted = browse("count.html", "--dump-dom");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(counted.out, found, std::regex("size 900x1600 colours ([0-9]+)\\."))) << counted.out;
  EXPECT_GT(std::stoi(found[1]), 10);
  EXPECT_THAT(counted.err, HasSubstr(":CONSOLE")) << "the check above could not fail";
}

}  // namespace
}  // namespace yoke::tests
