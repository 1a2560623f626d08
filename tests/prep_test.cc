// yoke prep model against a stand-in Hub that speaks https (tests/data/hub_server.py), sound and with faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/lab_fixture.h"
#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/launch/hub.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::optional<std::string> why_no_hub() {
  for (const char* program : {"python3", "openssl", "curl"}) {
    if (!find_program(program)) return fmt::format("{} is not installed", program);
  }
  return std::nullopt;
}

class StandInHub {
 public:
  explicit StandInHub(const std::string& faults) {
    run_or_throw({.argv = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                           "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                           "-keyout", path("key"), "-out", path("cert")},
                  .timeout = Seconds{30}});
    server_.emplace(Command{
        .argv = {"/usr/bin/python3", kSourceFolder / "tests/data/hub_server.py", path("cert"), path("key"), faults}});
    const auto line = server_->read_line(Deadline::after(Seconds{20}));
    if (!line) throw Error(ErrorCode::kUnavailable, "the stand-in Hub did not start");
    port_ = line->text.substr(0, line->text.find(' '));
  }
  std::map<std::string, std::string> environment(const std::string& token = "") const {
    return {{"HF_ENDPOINT", "https://localhost:" + port_},
            {"HF_TOKEN", token},
            {"HOME", scratch_.path()},
            {"CURL_CA_BUNDLE", path("cert")},
            {"HTTPS_PROXY", ""},
            {"https_proxy", ""}};
  }
  Outcome prep(std::vector<std::string> arguments, const std::string& token = "") const {
    return run_yoke(joined({"prep", "model"}, arguments),
                    {.environment = environment(token), .folder = scratch_.path(), .timeout = Seconds{60}});
  }
  std::string path(const std::string& name) const { return scratch_.path() / name; }

 private:
  ScratchDir scratch_{"yoke-hub"};
  std::optional<Process> server_;
  std::string port_;
};

void expect_complete(const StandInHub& hub) {
  EXPECT_EQ(fs::file_size(hub.path("name/model.safetensors")), 3'000'000U);
  EXPECT_EQ(read_file(hub.path("name/config.json")), "{\"model_type\": \"llama\"}");
  EXPECT_EQ(read_file(hub.path("name/sub/empty.txt")), "");
  EXPECT_EQ(read_file(hub.path("name/extra.bin")), std::string(1000, 'x'));
  EXPECT_FALSE(fs::exists(hub.path("name.partial")));
  EXPECT_FALSE(fs::exists(hub.path("name/.parts")));
}

TEST(PrepModel, DownloadsEveryFileAndReportsLicenceAndSizeFirst) {
  if (const auto why = why_no_hub()) GTEST_SKIP() << *why;
  const StandInHub hub("");
  const Outcome dry = hub.prep({"org/name", "--dry-run"});
  ASSERT_TRUE(dry.ok()) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("org/name: 4 files, "));
  EXPECT_THAT(dry.out, HasSubstr("Licence: apache-2.0. Open to everybody."));
  EXPECT_FALSE(fs::exists(hub.path("name")));
  const Outcome outcome = hub.prep({"org/name"});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  expect_complete(hub);
  EXPECT_EQ(hub.prep({"org/name"}).exit_status, info(ErrorCode::kConflict).exit_status);
  ASSERT_TRUE(hub.prep({"org/name", "other", "--exclude", "*.safetensors", "--exclude", "sub/*"}).ok());
  EXPECT_FALSE(fs::exists(hub.path("other/model.safetensors")));
  EXPECT_FALSE(fs::exists(hub.path("other/sub")));
  EXPECT_EQ(hub.prep({"org/nothing"}).exit_status, info(ErrorCode::kNotFound).exit_status);
  // A certificate that nobody signed is refused.
  auto untrusted = hub.environment();
  untrusted.erase("CURL_CA_BUNDLE");
  const Outcome refused = run_yoke({"prep", "model", "org/name", "third"}, {.environment = untrusted});
  EXPECT_EQ(refused.exit_status, info(ErrorCode::kPermission).exit_status) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("the certificate of localhost"));
}

TEST(PrepModel, GoesOnAfterCutsBusyServersAndEndedSignatures) {
  if (const auto why = why_no_hub()) GTEST_SKIP() << *why;
  const StandInHub hub("cut,busy,expired");
  const Outcome outcome = hub.prep({"org/name", "--parallel", "2"});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  expect_complete(hub);
}

TEST(PrepModel, ContinuesWhatAKilledDownloadLeft) {
  if (const auto why = why_no_hub()) GTEST_SKIP() << *why;
  const StandInHub hub("slow,no-range");
  {
    Process first({.argv = {YOKE_PROGRAM, "prep", "model", "org/name", "--parallel", "1"},
                   .environment = hub.environment(),
                   .folder = hub.path(".")});
    const Deadline deadline = Deadline::after(Seconds{20});
    while (!fs::exists(hub.path("name.partial/config.json")) && !deadline.expired()) real_clock().sleep(Seconds{0.02});
    kill(first.pid(), SIGKILL);
  }
  ASSERT_TRUE(fs::exists(hub.path("name.partial/config.json")));
  EXPECT_FALSE(fs::exists(hub.path("name"))) << "an unfinished folder has another name";
  ASSERT_TRUE(hub.prep({"org/name"}).ok());
  expect_complete(hub);
}

class PrepModelFaults : public testing::TestWithParam<std::pair<const char*, const char*>> {};
TEST_P(PrepModelFaults, AreRefusedAndLeaveNoFolder) {
  if (const auto why = why_no_hub()) GTEST_SKIP() << *why;
  const StandInHub hub(GetParam().first);
  const Outcome outcome = hub.prep({"org/name"});
  EXPECT_EQ(outcome.exit_status, info(ErrorCode::kInvalid).exit_status) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().second));
  EXPECT_FALSE(fs::exists(hub.path("name")));
  EXPECT_FALSE(fs::exists(hub.path("evil")));
}
INSTANTIATE_TEST_SUITE_P(Hub, PrepModelFaults,
                         testing::Values(std::pair{"wrong-bytes", "its hash is another, twice"},
                                         std::pair{"wrong-size", "the server reports 3000005 bytes"},
                                         std::pair{"other-commit", "it is of another commit"},
                                         std::pair{"escape", "is no name below the model's folder"},
                                         std::pair{"case", "in upper and lower case only"}),
                         [](const auto& test) {
                           std::string name = test.param.first;
                           std::erase(name, '-');
                           return name;
                         });

TEST(PrepModel, AGatedModelNeedsATokenThatIsInNoArgument) {
  if (const auto why = why_no_hub()) GTEST_SKIP() << *why;
  const StandInHub hub("gated,slow");
  const Outcome without = hub.prep({"org/name"});
  EXPECT_EQ(without.exit_status, info(ErrorCode::kPermission).exit_status);
  EXPECT_THAT(without.err, HasSubstr("is gated, and there is no token"));
  const Outcome wrong = hub.prep({"org/name"}, "bad-token");
  EXPECT_EQ(wrong.exit_status, info(ErrorCode::kPermission).exit_status) << wrong.err;
  EXPECT_THAT(wrong.err + wrong.out, Not(HasSubstr("bad-token")));
  Process good({.argv = {YOKE_PROGRAM, "prep", "model", "org/name", "--verbose"},
                .environment = hub.environment("good-token"),
                .folder = hub.path(".")});
  std::string arguments;
  for (std::optional<Outcome> end; !end; end = good.wait(Deadline::after(Seconds{0.02}))) {
    for (const auto& process : fs::directory_iterator("/proc")) {
      const auto line = try_to([&] { return read_file(process.path() / "cmdline", Bytes{1 << 16}); });
      if (line) arguments += *line;
    }
    if (arguments.size() > (50U << 20)) arguments.clear();
  }
  EXPECT_THAT(arguments, Not(HasSubstr("good-token")));
  EXPECT_THAT(arguments, HasSubstr("curl")) << "it was looked at while it ran";
  expect_complete(hub);
}

// ---- images and builds, with programs in the place of Docker's and CUDA's

// Docker with one image: what a pull by tag brings is in /tmp/registry of the node, what it has in /tmp/image.
constexpr const char* kStandInDocker =
    "#!/bin/sh\n"
    "echo \"$*\" >> /tmp/docker.log\n"
    "case \"$1 $2\" in\n"
    "  'image inspect') [ -s /tmp/image ] || { echo \"Error: No such image: $5\" >&2; exit 1; }\n"
    "    echo \"sha256:$(cat /tmp/image) repo/engine@sha256:$(cat /tmp/image)\" ;;\n"
    "  'pull --quiet') case $3 in\n"
    "    *@sha256:*) echo \"${3#*@sha256:}\" > /tmp/image ;;\n"
    "    *) [ -s /tmp/registry ] || { echo 'connection refused' >&2; exit 1; }; cp /tmp/registry /tmp/image ;;\n"
    "    esac ;;\n"
    "esac\n";

TEST(PrepImage, PullsWhatIsMissingAndGivesAllNodesTheHeadsImage) {
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  const TestLab lab({"--nodes", "2"});
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "docker", kStandInDocker);
  for (const char* node : {"1", "2"}) {
    ASSERT_TRUE(lab.put(node, scratch.path() / "docker", "/usr/local/bin/docker").ok());
  }
  const auto prep = [&](std::vector<std::string> more) {
    return lab.yoke(joined({"prep", "image", "repo/engine:1"}, more));
  };
  const Outcome missing = prep({"--dry-run"});
  EXPECT_EQ(missing.exit_status, kExitFindings) << missing.err;
  EXPECT_THAT(missing.out, HasSubstr("spark-2: missing: docker pull repo/engine:1"));
  // The tag moves between the two pulls.
  ASSERT_TRUE(lab.exec("1", {"sh", "-c", "echo aaa > /tmp/registry"}).ok());
  const Outcome alone = prep({});
  EXPECT_EQ(alone.exit_status, kExitFindings);
  EXPECT_THAT(alone.out, HasSubstr("spark-2: cannot be pulled: "));
  EXPECT_THAT(alone.out, HasSubstr("connection refused"));
  ASSERT_TRUE(lab.exec("2", {"sh", "-c", "echo bbb > /tmp/registry"}).ok());
  const Outcome both = prep({});
  EXPECT_TRUE(both.ok()) << both.out << both.err;
  EXPECT_THAT(both.out, HasSubstr("All nodes have the same image.\nPin it: --image repo/engine@sha256:aaa\n"));
  EXPECT_EQ(lab.exec("2", {"cat", "/tmp/image"}).out, "aaa\n");
  const Outcome wrong = lab.yoke({"prep", "image", "vlm"});
  EXPECT_EQ(wrong.exit_status, info(ErrorCode::kNotFound).exit_status);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'vllm'?"));
  // The build stops on a node without a compiler, and says what is missing.
  const Outcome nccl = lab.yoke({"prep", "nccl", "--arch", "sm_121"});
  EXPECT_EQ(nccl.exit_status, kExitFindings);
  EXPECT_THAT(nccl.out,
              testing::ContainsRegex("spark-2: exited with status 2: [a-z]+ is not installed, or not on PATH"));
}

TEST(Prep, TheChecklistNamesCablesAndSizes) {
  const Outcome outcome =
      run_yoke({"prep", "--checklist", "--on", "2xspark", "--model", "llama-3.1-405b", "--format", "int4"});
  ASSERT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[ ] 2 x spark, each with its own power supply"));
  EXPECT_THAT(outcome.out, HasSubstr("[ ] 1 cable and one to spare: Amphenol NJAAKK-N911"));
  EXPECT_THAT(outcome.out, HasSubstr("llama-3.1-405b in int4: about "));
  EXPECT_THAT(outcome.out, HasSubstr("fits as TP 2"));
}

TEST(HubHash, IsGits) {
  EXPECT_EQ(launch::sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(launch::sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(launch::sha1_hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  const ScratchDir scratch;
  for (const std::size_t size : {0U, 1U, 55U, 56U, 63U, 64U, 65U, 1000U}) {
    write_file_atomically(scratch.path() / "file", std::string(size, 'z'));
    const Outcome git = run({.argv = {"git", "hash-object", scratch.path() / "file"}});
    EXPECT_EQ(launch::git_blob_hash(scratch.path() / "file") + "\n", git.out) << size;
  }
  EXPECT_TRUE(launch::fits_pattern("a/b.bin", "*.bin"));
  EXPECT_FALSE(launch::fits_pattern("a/b.bin", "*.bi"));
  EXPECT_TRUE(launch::fits_pattern("abc", "a?c"));
}

}  // namespace
}  // namespace yoke::tests
