// Files that mean harm: each is refused or read within 1 GB and 5 s of processor time, and none ends the program.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <functional>
#include <thread>

#include "tests/lab_fixture.h"
#include "tests/program.h"
#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;

const fs::path kShippedModel = kSourceFolder / "models/nano";

std::string repeated(std::string_view text, std::size_t times, std::string_view between = "") {
  std::string all;
  all.reserve(times * (text.size() + between.size()));
  for (std::size_t i = 0; i < times; ++i) {
    if (i > 0) all += between;
    all += text;
  }
  return all;
}

// The small model with one file replaced.
fs::path model_with(const fs::path& scratch, const std::string& name, std::string_view content) {
  const fs::path folder = scratch / "m";
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(kShippedModel)) {
    if (entry.path().filename() != name) fs::create_symlink(entry.path(), folder / entry.path().filename());
  }
  write_file_atomically(folder / name, content);
  return folder;
}

// A JSON file of the model with more keys, or others in their place.
std::string changed(const std::string& name, const std::vector<std::pair<std::string, std::string>>& fields) {
  Document document = parse_json(read_file(kShippedModel / name), name);
  std::erase_if(document.fields, [&](const auto& field) {
    return std::any_of(fields.begin(), fields.end(), [&](const auto& fresh) { return fresh.first == field.first; });
  });
  std::string text = print_json(document, JsonLayout::kOneLine);
  text.pop_back();
  for (const auto& [key, value] : fields) text += fmt::format(",\"{}\":{}", key, value);
  return text + "}";
}

std::string with_targets(const std::string& targets) {
  return changed("config.json",
                 {{"quantization_config",
                   R"({"quant_method":"compressed-tensors","format":"pack-quantized","ignore":["lm_head"],
      "config_groups":{"group_0":{"targets":)" +
                       targets + R"(,"weights":{"num_bits":4,"group_size":128}}}})"}});
}

std::string safetensors(const std::string& header) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header;
}

using Arguments = std::vector<std::string>;
struct Hostile {
  const char* name;
  std::function<Arguments(const fs::path& scratch)> make;
  const char* says = "";  // in the error; empty: it may be read as well
  const char* input = "";
};

Arguments show(const fs::path& scratch, const std::string& file, std::string_view content) {
  return {"model", "show", model_with(scratch, file, content)};
}
Arguments show_tensors(const fs::path& scratch, const std::string& header) {
  return show(scratch, "model.safetensors", safetensors(header));
}
Arguments tokenize(const fs::path& scratch, const std::vector<std::pair<std::string, std::string>>& fields,
                   const std::string& text) {
  write_file_atomically(scratch / "text", text);
  return {"tokenize", model_with(scratch, "tokenizer.json", changed("tokenizer.json", fields)), "--ids"};
}
Arguments split_by(const fs::path& scratch, const std::string& pattern, const std::string& text) {
  return tokenize(scratch,
                  {{"pre_tokenizer", fmt::format(R"({{"type":"Split","pattern":{{"Regex":"{}"}},
      "behavior":"Isolated","invert":false}})",
                                                 pattern)}},
                  text);
}
Arguments chat(const fs::path& scratch, const std::string& source) {
  const fs::path folder = model_with(scratch, "tokenizer_config.json", "{}");
  write_file_atomically(folder / "chat_template.jinja", source);
  return {"tokenize", folder, "--ids", "--chat", "hello"};
}
Arguments cluster(const fs::path& scratch, const std::string& text) {
  write_file_atomically(scratch / "cluster.yaml", text);
  return {"cluster", "show"};
}
Arguments capture(const fs::path& scratch, const std::string& tree, const std::string& links = "") {
  const fs::path folder = scratch / "c";
  const Outcome made = run_yoke({"probe", "--here", "--capture", folder});
  if (!made.ok()) throw Error(ErrorCode::kUnavailable, "no capture: " + made.err);
  write_file_atomically(folder / "machine.tree", tree);
  if (!links.empty()) write_file_atomically(folder / "links.json", links);
  return {"probe", "--root", folder};
}
Arguments nccl_log(const fs::path& scratch, const std::string& text) {
  write_file_atomically(scratch / "log", text);
  return {"check", "nccl-log", scratch / "log"};
}

const std::string kEmptyTensor = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
const std::string kDoubling = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";

const std::vector<Hostile> kFiles = {
    {"ManyNumbers", [](auto& t) { return show(t, "config.json", "{\"x\":[" + repeated("0", 15'000'000, ",") + "]}"); },
     "more than 1000000 values"},
    {"ManyEmptyLists", [](auto& t) { return show(t, "config.json", "[" + repeated("[]", 10'000'000, ",") + "]"); },
     "more than 1000000 values"},
    {"ManyKeys",
     [](auto& t) {
       std::string text = "{\"k\":0";
       for (int i = 0; i < 990'000; ++i) text += fmt::format(",\"k{}\":0", i);
       return show(t, "config.json", text + "}");
     },
     "neither 'architectures' nor 'model_type'"},
    {"NulByte", [](auto& t) { return show(t, "config.json", std::string("{}\0{}", 5)); }, "NUL byte"},
    {"LongPattern",
     [](auto& t) { return show(t, "config.json", with_targets("[\"re:" + repeated("a", 200'000) + "\"]")); },
     "more than the 1024 that yoke reads"},
    {"NestedPattern",
     [](auto& t) {
       return show(t, "config.json", with_targets("[\"re:" + repeated("(", 500) + "a" + repeated(")", 500) + "\"]"));
     },
     "cannot be used"},
    {"ManyPatterns",
     [](auto& t) {
       return show(t, "config.json", with_targets("[" + repeated("\"re:(.?){2000}x\"", 2000, ",") + "]"));
     },
     "more than 1000 patterns"},
    {"SlowPatterns",
     [](auto& t) { return show(t, "config.json", with_targets("[" + repeated("\"re:(.?){300}x\"", 900, ",") + "]")); }},
    {"PatternThatIsNone", [](auto& t) { return show(t, "config.json", with_targets("[\"re:[z-a]\"]")); },
     "cannot be used"},
    {"LongTensorName",
     [](auto& t) { return show_tensors(t, "{\"" + repeated("a", 40'000'000) + "\":" + kEmptyTensor + "}"); },
     "more than 512"},
    {"ManyTensors",
     [](auto& t) {
       std::string header = "{\"t\":" + kEmptyTensor;
       for (int i = 0; i < 600'000; ++i) header += fmt::format(",\"t{}\":{}", i, kEmptyTensor);
       return show_tensors(t, header + "}");
     },
     "more than 1000000 values"},
    {"ManyAxes",
     [](auto& t) {
       return show_tensors(t, R"({"a":{"dtype":"F32","shape":[)" + repeated("0", 3'000'000, ",") + "]}}");
     },
     "more than 1000000 values"},
    {"MuchMetadata",
     [](auto& t) {
       std::string header = R"({"__metadata__":{"k":"v")";
       for (int i = 0; i < 700'000; ++i) header += fmt::format(",\"k{}\":\"{:0100}\"", i, 0);
       return show_tensors(t, header + "}}");
     }},
    {"TensorNameThatSteers",
     [](auto& t) {
       return show_tensors(t, R"({"\u001b]0;owned\u0007":{"dtype":"C64","shape":[1],"data_offsets":[0,0]}})");
     },
     "\\x1b]0;owned\\x07"},
    {"DoublingNormalizer",
     [](auto& t) {
       return tokenize(
           t, {{"normalizer", R"({"type":"Sequence","normalizers":[)" + repeated(kDoubling, 40, ",") + "]}"}}, "a");
     },
     "a replacement makes more than"},
    {"LongMark",
     [](auto& t) {
       return tokenize(t,
                       {{"pre_tokenizer", R"({"type":"Metaspace","replacement":")" + repeated("b", 1'000'000) +
                                              R"(","prepend_scheme":"always","split":false})"}},
                       repeated(" ", 50'000));
     },
     "has more than 1024 bytes"},
    {"MatchBehindItsEnd", [](auto& t) { return split_by(t, R"((?(DEFINE)(?<k>ab\\K))(?=(?&k)))", "xxabab"); },
     "start before the search or after their end"},
    {"MatchBeforeTheSearch", [](auto& t) { return split_by(t, R"((?(DEFINE)(?<k>\\Ka))(?<=(?&k))b|a)", "abababab"); },
     "start before the search or after their end"},
    {"SlowPatternManyTimes",
     [](auto& t) { return split_by(t, "(?:a|a)+b|a", repeated(std::string(23, 'a') + "!", 400)); }, "takes more than"},
    {"QuadraticPattern", [](auto& t) { return split_by(t, "(?<=a)a+[bc]", repeated("a", 300'000)); },
     "takes more than"},
    {"LongAddedToken",
     [](auto& t) {
       return tokenize(
           t, {{"added_tokens", R"([{"id":5000,"content":")" + repeated("a", 200'000) + R"(b","special":false}])"}},
           repeated("a", 400'000));
     },
     "more than 1024"},
    {"AddedTokenThatStrips",
     [](auto& t) {
       return tokenize(t, {{"added_tokens", R"([{"id":5000,"content":" ","special":false,"lstrip":true}])"}},
                       repeated(" ", 400'000));
     }},
    {"ManyPostProcessors",
     [](auto& t) {
       return tokenize(
           t,
           {{"post_processor", R"({"type":"Sequence","processors":[)" +
                                   repeated(R"({"type":"BertProcessing","cls":["a",0],"sep":["b",1]})", 100'000, ",") +
                                   "]}"}},
           "a");
     },
     "more than 1024 tokens are put around"},
    {"TemplateThatStrips",
     [](auto& t) {
       return chat(t, "{% set x = ' ' * 16000000 %}{% for i in range(100000) %}{% set y = x.strip() %}{% endfor %}");
     },
     "does not come to an end"},
    {"TemplateThatCompares",
     [](auto& t) {
       return chat(t,
                   "{% set x = ' ' * 16000000 %}{% set y = ' ' * 16000000 %}{% for i in range(100000) %}"
                   "{% set z = x.startswith(y) %}{% endfor %}");
     },
     "does not come to an end"},
    {"TemplateThatReadsNumbers",
     [](auto& t) {
       return chat(t, "{% set x = ' ' * 16000000 %}{% for i in range(100000) %}{% set y = x|int %}{% endfor %}");
     },
     "does not come to an end"},
    {"ClusterFileOfKeys",
     [](auto& t) {
       std::string text;
       for (int i = 0; i < 150'000; ++i) text += fmt::format("{:x}:\n", i);
       return cluster(t, text);
     },
     "unknown key '0'"},
    {"ClusterFileOfHostRanges",
     [](auto& t) { return cluster(t, "name: r\nnodes: 'n[" + repeated("0-4000", 140'000, ",") + "]'\n"); },
     "more than 65536 bytes"},
    {"ClusterFileOfHostBrackets",
     [](auto& t) { return cluster(t, "name: r\nnodes: 'n" + repeated("[1]", 20'000) + "'\n"); },
     "more than 8 brackets"},
    {"ClusterFileOfHostLists",
     [](auto& t) { return cluster(t, "name: r\nnodes:\n" + repeated("- { name: 'n[1-4000]' }\n", 30'000)); },
     "stands for too many nodes"},
    {"BatchWithoutLineEnd",
     [](auto& t) {
       write_file_atomically(t / "in", "{");
       fs::resize_file(t / "in", std::uintmax_t{1} << 40);
       return Arguments{"batch", kShippedModel, t / "in", "-o", t / "out"};
     },
     "is longer than 16 MiB"},
    {"RecordWithoutLineEnd",
     [](auto& t) {
       write_file_atomically(t / "r", "{");
       fs::resize_file(t / "r", std::uintmax_t{1} << 30);
       return Arguments{"watch", "--replay", t / "r", "--once"};
     },
     "is no record"},
    {"RecipeThatGrows",
     [](auto& t) {
       write_file_atomically(t / "r.yaml", "command: vllm serve" + repeated(" {a}", 20'000) +
                                               "\ndefaults: { a: " + repeated("b", 100'000) + " }\n");
       return Arguments{"launch", "convert", t / "r.yaml"};
     },
     "has more than 2 MiB"},
    {"CaptureThatIncludesOtherFiles", [](auto& t) { return capture(t, "include ../../../../../../../etc/passwd\n"); },
     "outside of the capture's folder"},
    {"CaptureThatIncludesForEver",
     [](auto& t) {
       const Arguments arguments = capture(t, repeated("include i1\n", 300));
       for (int i = 1; i < 7; ++i)
         write_file_atomically(t / "c" / fmt::format("i{}", i), repeated(fmt::format("include i{}\n", i + 1), 300));
       write_file_atomically(t / "c/i7", "/x = 1\n");
       return arguments;
     },
     "more than 10000 files are included"},
    {"CaptureOfManyLinks", [](auto& t) { return capture(t, "", "[" + repeated("0", 10'000'000, ",") + "]"); },
     "more than 1000000 values"},
    {"CaptureOfManyInterfaces",
     [](auto& t) {
       std::string links;
       for (int i = 1; i < 45'000; ++i) {
         links += fmt::format(
             R"({}{{"ifindex":{},"ifname":"e{}","flags":["UP"],"mtu":9000,"operstate":"UP","link_type":"ether",)"
             R"("address":"56:40:45:00:00:01","broadcast":"ff:ff:ff:ff:ff:ff","addr_info":[]}})",
             i > 1 ? "," : "", i, i);
       }
       return capture(t, "/x = 1\n", "{\"links\":[" + links + "],\"routes\":[]}");
     },
     "more than 8192"},
    {"CaptureThatSteersTheTerminal",
     [](auto& t) {
       return capture(t, R"(/proc/sys/kernel/hostname : "\x1b]0;owned\x07\x1b[31mred")"
                         "\n");
     }},
    {"CaptureOfLines", [](auto& t) { return capture(t, "/a <<\n" + repeated("  x\n", 10'000'000)); }},
    {"LogOfOneLine", [](auto& t) { return nccl_log(t, "h:1:1 [0] NCCL INFO " + repeated("x", 200'000'000)); }},
    {"LogOfMarks", [](auto& t) { return nccl_log(t, repeated("NCCL INFO ", 10'000'000)); }},
    {"LogOfChannels",
     [](auto& t) {
       return nccl_log(
           t, repeated("h:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n", 3'000'000));
     }},
    {"LogOfShortLines", [](auto& t) { return nccl_log(t, "NCCL INFO x\n" + repeated("x\n", 30'000'000)); }},
    {"LogOfBrokenJson", [](auto& t) { return nccl_log(t, repeated("{\"log\"}\n", 3'000'000)); }},
    {"ManyRanks", [](auto&) { return Arguments{"job", "run", "--ranks", "2000000000", "--", "true"}; },
     "more than the 4096 that a job may have"},
};

class HostileFiles : public testing::TestWithParam<Hostile> {};

TEST_P(HostileFiles, TakeLittleAndEndNothing) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes more memory than the limit";
  const ScratchDir scratch;
  const Hostile& hostile = GetParam();
  const Arguments arguments = hostile.make(scratch.path());
  Command command{.folder = scratch.path(), .timeout = 120_s};
  if (fs::exists(scratch.path() / "text")) command.input_file = scratch.path() / "text";
  // Address space in kB and processor time in seconds, so that a loaded machine changes nothing.
  command.argv = {"sh", "-c", "ulimit -c 0; ulimit -v 1000000; ulimit -t 5; exec \"$@\"", "sh", YOKE_PROGRAM};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.signal, std::nullopt) << outcome.describe();
  EXPECT_LT(outcome.exit_status, 128) << outcome.describe();
  EXPECT_EQ(outcome.err.find("out of memory"), std::string::npos) << outcome.err;
  EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos) << printable(outcome.out + outcome.err, 2000);
  EXPECT_THAT(outcome.err.substr(0, 2000), HasSubstr(hostile.says));
}
INSTANTIATE_TEST_SUITE_P(Kinds, HostileFiles, testing::ValuesIn(kFiles),
                         [](const auto& test) { return std::string(test.param.name); });

// SIGTERM half a second after the start, and a second to end.
void expect_end_by_sigterm(Command command, const std::string& what) {
  Process process(std::move(command));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_EQ(kill(process.pid(), SIGTERM), 0) << what;
  const Instant start = real_clock().now();
  const auto outcome = process.wait(Deadline::after(20_s));
  ASSERT_TRUE(outcome) << what << " is still there";
  EXPECT_EQ(outcome->exit_status, 128 + SIGTERM) << what << " ended by itself: " << outcome->err;
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 5) << what;
}

TEST(Sigterm, EndsWhatWaitsForItsInput) {
  for (const Arguments& arguments :
       {Arguments{"tokenize", kShippedModel, "--ids"}, Arguments{"check", "nccl-log", "-"}}) {
    Command command{.argv = joined({YOKE_PROGRAM}, arguments)};
    command.input_mode = InputMode::kPipe;
    expect_end_by_sigterm(std::move(command), arguments.front());
  }
}

TEST(Sigterm, EndsWhatComputes) {
  const ScratchDir scratch;
  const Arguments slow = split_by(scratch.path(), "(?:a|a)+b|a", repeated(std::string(23, 'a') + "!", 400'000));
  Command command{.argv = joined({YOKE_PROGRAM}, slow)};
  command.input_file = scratch.path() / "text";
  expect_end_by_sigterm(std::move(command), "a pattern");
}

// What a node says of itself reaches the terminal as text.
TEST(NodesThatMeanHarm, CannotSteerTheTerminal) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab;
  const Outcome named =
      lab.exec("2", {"sh", "-c", "printf '\\033]0;owned\\007\\033[31mspark' >/proc/sys/kernel/hostname"});
  ASSERT_TRUE(named.ok()) << named.err;
  for (const Arguments& arguments : {Arguments{"cluster", "reach"}, Arguments{"probe", "--node", "spark-2"},
                                     Arguments{"probe"}, Arguments{"check", "--no-measure"}}) {
    const Outcome outcome = lab.yoke(arguments);
    const std::string shown = outcome.out + outcome.err;
    EXPECT_EQ(shown.find('\x1b'), std::string::npos) << arguments.front() << ": " << printable(shown, 2000);
  }
}

}  // namespace
}  // namespace yoke::tests
