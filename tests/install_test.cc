// `make install`: what scripts/install puts under a prefix works there, away from the sources. And machines on which
// `make` cannot have what it needs: each run says what is missing, and changes nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using namespace literals;
using testing::HasSubstr;

TEST(Install, PutsAProgramManualCompletionAndAWholeModelUnderThePrefix) {
  const ScratchDir scratch;
  const fs::path prefix = scratch.path() / "usr";
  fs::create_directory(prefix);
  const Outcome installed = run({.argv = {"scripts/install", prefix}, .folder = kSourceFolder, .timeout = 60_s});
  ASSERT_TRUE(installed.ok()) << installed.describe() << installed.err;
  const std::string program = prefix / "bin/yoke";
  EXPECT_TRUE(run({.argv = {program, "version"}}).ok());
  EXPECT_THAT(read_file(prefix / "share/man/man1/yoke.1"), HasSubstr("EXIT STATUS"));
  EXPECT_THAT(read_file(prefix / "share/bash-completion/completions/yoke"), HasSubstr("complete "));
  // A file that the model lacks would be missed here: weights, tokenizer, chat template, where an answer ends.
  const Outcome answer =
      run({.argv = {program, "run", prefix / "share/yoke/models/nano", "-p", "What is the MTU?", "-n", "4"},
           .folder = scratch.path(),
           .timeout = 60_s});
  EXPECT_TRUE(answer.ok()) << answer.err;
  const Outcome here = run_yoke({"run", kSourceFolder / "models/nano", "-p", "What is the MTU?", "-n", "4"},
                                {.folder = scratch.path(), .timeout = 60_s});
  EXPECT_EQ(answer.out, here.out);
}

// A machine that has only the programs of its folder: links to some of this machine's, and scripts in the place of
// others. What a script in place of apt-get is asked is noted.
class OtherMachine {
 public:
  OtherMachine() {
    for (const char* const name :
         {"sh", "grep", "tr", "cat", "mktemp", "tail", "head", "sed", "sort", "awk", "env", "rm"}) {
      const Outcome found = run({.argv = {"sh", "-c", std::string("readlink -f \"$(command -v ") + name + ")\""}});
      fs::create_symlink(std::string(trim(found.out)), programs_ / name);
    }
  }
  void add(const std::string& name, const std::string& script) {
    write_file_atomically(programs_ / name, "#!/bin/sh\n" + script + "\n", {.mode = 0755});
  }
  // Debian without any of the packages.
  void add_packages(const std::string& user, const std::string& apt) {
    add("id", "echo " + user);
    add("dpkg-query", "exit 1");
    add("apt-get", "echo \"$*\" >> " + asked_.native() + "\n" + apt);
  }
  Outcome call(const std::vector<std::string>& argv, const fs::path& folder = kSourceFolder) const {
    return run(
        {.argv = joined({"env", "-i", "PATH=" + programs_.native(), "sh"}, argv), .folder = folder, .timeout = 60_s});
  }
  std::string asked() const { return fs::exists(asked_) ? read_file(asked_) : ""; }

 private:
  static fs::path made(const fs::path& folder) {
    fs::create_directory(folder);
    return folder;
  }
  const ScratchDir scratch_;
  const fs::path programs_ = made(scratch_.path() / "bin");
  const fs::path asked_ = scratch_.path() / "asked";
};

TEST(InstallDeps, AnotherDistributionGetsTheListOfWhatToInstall) {
  const OtherMachine machine;
  const Outcome outcome = machine.call({"scripts/install-deps", "build"});
  EXPECT_EQ(outcome.exit_status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("this is not Debian or Ubuntu"));
  EXPECT_THAT(outcome.err, HasSubstr("libyaml-cpp-dev"));
  EXPECT_THAT(outcome.err, HasSubstr("nothing was changed"));
}

TEST(InstallDeps, AnotherDistributionThatHasEverythingIsLeftAlone) {
  OtherMachine machine;
  for (const char* const name : {"c++", "cmake", "ninja", "git"}) machine.add(name, "cat > /dev/null");
  const Outcome outcome = machine.call({"scripts/install-deps", "build"});
  EXPECT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

TEST(InstallDeps, AUserWithoutSudoIsGivenTheCommandForRoot) {
  OtherMachine machine;
  machine.add_packages("1000", "exit 0");
  const Outcome outcome = machine.call({"scripts/install-deps", "build"});
  EXPECT_EQ(outcome.exit_status, 6) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("not root, and there is no sudo. Nothing was changed. As root: apt-get install g++"));
  EXPECT_EQ(machine.asked(), "");
}

TEST(InstallDeps, WithoutAPackageSourceNothingIsInstalled) {
  OtherMachine machine;
  machine.add_packages("0", "echo 'E: Unable to locate package ninja-build' >&2; exit 100");
  const Outcome outcome = machine.call({"scripts/install-deps", "build"});
  EXPECT_EQ(outcome.exit_status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Unable to locate package ninja-build"));
  EXPECT_THAT(outcome.err,
              HasSubstr("the package source cannot be reached, or lacks some of these. Nothing was changed"));
  EXPECT_THAT(machine.asked(), HasSubstr("--print-uris")) << "what is asked first changes nothing";
  EXPECT_THAT(machine.asked(), testing::Not(HasSubstr("DPkg::Lock::Timeout=300 install")));
}

TEST(InstallDeps, SaysWhatItInstallsBeforeItDoes) {
  OtherMachine machine;
  machine.add_packages("0",
                       "case \"$*\" in *--print-uris*) echo \"'http://deb/x.deb' x.deb 5000000 SHA256:0\" ;; esac");
  const Outcome outcome = machine.call({"scripts/install-deps", "lab"});
  EXPECT_TRUE(outcome.ok()) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("missing: openssh-client"));
  EXPECT_THAT(outcome.err, HasSubstr("installing 1 packages, 5 MB to download"));
  EXPECT_THAT(machine.asked(), HasSubstr("DPkg::Lock::Timeout=300 install --no-install-recommends openssh-client"));
}

TEST(Build, AnOlderCmakeIsNamedAndNothingIsConfigured) {
  const ScratchDir scratch;  // with the presets, and nothing built yet
  fs::create_directory(scratch.path() / "scripts");
  fs::copy(kSourceFolder / "scripts/build", scratch.path() / "scripts/build");
  write_file_atomically(scratch.path() / "CMakePresets.json", "{}");
  for (const auto& [version, words] : std::vector<std::pair<std::string, std::string>>{
           {"3.22.1", "CMake 3.25 or newer is needed, and this machine has 3.22.1. Nothing was changed."},
           {"", "CMake 3.25 or newer is needed, and this machine has none. Nothing was changed."}}) {
    OtherMachine machine;
    if (!version.empty()) machine.add("cmake", "echo cmake version " + version);
    const Outcome outcome = machine.call({"scripts/build", "release"}, scratch.path());
    EXPECT_EQ(outcome.exit_status, 6) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_FALSE(fs::exists(scratch.path() / "build"));
  }
}

}  // namespace
}  // namespace yoke::tests
