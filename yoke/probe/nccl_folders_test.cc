#include "yoke/probe/nccl_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::probe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TEST(ShellAssignments, ReplaceVariablesAndTheHomeFolder) {
  const Variables variables = with_shell_assignments({{"HOME", "/home/a"}},
                                                     "export ENGINES=/data/engines\n"
                                                     "export NCCL_HOME=$ENGINES/nccl # by hand\n"
                                                     "QUOTED=\"${NCCL_HOME}/lib\"; export QUOTED\n"
                                                     "LITERAL='$ENGINES'\n"
                                                     "BELOW=~/nccl\n"
                                                     "  INDENTED=/x\n");
  EXPECT_EQ(variables.at("NCCL_HOME"), "/data/engines/nccl");
  EXPECT_EQ(variables.at("QUOTED"), "/data/engines/nccl/lib");
  EXPECT_EQ(variables.at("LITERAL"), "$ENGINES");
  EXPECT_EQ(variables.at("BELOW"), "/home/a/nccl");
  EXPECT_FALSE(variables.contains("INDENTED"));
}

TEST(ShellAssignments, LeaveAloneWhatNeedsAShell) {
  const Variables variables =
      with_shell_assignments({{"A", "/old"}}, "A=$(pwd)\nA=`pwd`\nA=${A:-/x}\nA=\"/open\nB=a\\ b\n1C=/x\n=/y\n");
  EXPECT_EQ(variables, (Variables{{"A", "/old"}}));
}

TEST(ShellAssignments, DoNotGrowWithoutEnd) {
  std::string text = "A=/x\n";
  for (int i = 0; i < 200; ++i) text += "A=$A$A\n";
  EXPECT_LE(with_shell_assignments({}, text).at("A").size(), 16384U);
}

TEST(NcclFolders, FollowTheVariablesOfEveryShellFile) {
  MemoryTree files;
  files.add_file("/home/a/.bashrc", "export ENGINES=/data/engines\nexport NCCL_HOME=$ENGINES/nccl\n");
  files.add_file("/home/a/.profile", "export NCCL_HOME=/srv/plain/build\n");
  files.add_file("/etc/profile.d/cuda.sh", "export LD_LIBRARY_PATH=/opt/x/lib:relative:$LD_LIBRARY_PATH\n");
  const std::vector<std::string> folders = nccl_folders(files, {{"HOME", "/home/a"}, {"LD_LIBRARY_PATH", "/first"}});
  for (const char* folder :
       {"/data/engines/nccl/lib", "/data/engines/nccl/build/lib", "/srv/plain/build/lib", "/opt/x/lib", "/first"}) {
    EXPECT_THAT(folders, Contains(folder));
  }
  EXPECT_THAT(folders, Not(Contains("relative")));
}

TEST(NcclFolders, IncludeThoseOfTheLoader) {
  MemoryTree files;
  files.add_file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n/usr/local/own # comment\n");
  files.add_file("/etc/ld.so.conf.d/a.conf", "/opt2/libs\n# none\n");
  files.add_file("/etc/ld.so.conf.d/readme", "/not/this\n");
  EXPECT_THAT(loader_folders(files), ElementsAre("/opt2/libs", "/usr/local/own"));
}

TEST(NcclFolders, AConfigurationThatIncludesItselfEnds) {
  MemoryTree files;
  files.add_file("/etc/ld.so.conf", "/once\ninclude /etc/ld.so.conf\n");
  EXPECT_THAT(loader_folders(files), Contains("/once"));
}

}  // namespace
}  // namespace yoke::probe
