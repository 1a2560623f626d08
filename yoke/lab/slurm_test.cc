#include "yoke/lab/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error.h"

namespace yoke::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const SlurmHost kDebian12{.cpus = 2, .version = "slurm-wlm 22.05.8", .pmix = SlurmHost::Pmix::kThere};

// The file's content, or why there is none.
std::string content_of(const LabLayout& layout, const SlurmHost& host, const std::string& path) {
  for (const SlurmFile& file : slurm_files(layout, host)) {
    if (file.path == path) return file.content;
  }
  return "no such file";
}

std::string slurm_conf(const LabLayout& layout, const SlurmHost& host = kDebian12) {
  return content_of(layout, host, "/etc/slurm/slurm.conf");
}

TEST(SlurmFiles, NameTheHeadAndEveryNodeByManagementAddress) {
  const std::string conf = slurm_conf(lay_out_lab({.nodes = 3}));
  EXPECT_THAT(conf, HasSubstr("SlurmctldHost=spark-1(10.77.0.1)\n"));
  EXPECT_THAT(conf, HasSubstr("NodeName=spark-1 NodeAddr=10.77.0.1 CPUs=2 RealMemory=512 Gres=gpu:1 State=UNKNOWN\n"));
  EXPECT_THAT(conf, HasSubstr("NodeName=spark-3 NodeAddr=10.77.0.3 "));
  EXPECT_THAT(conf, Not(HasSubstr("spark-4")));
  EXPECT_THAT(conf, Not(HasSubstr("{"))) << "a place that was not filled in";
}

TEST(SlurmFiles, MemoryIsTheNodesInWholeMebibytes) {
  EXPECT_THAT(slurm_conf(lay_out_lab({.memory = Bytes{(1LL << 30) + (1 << 20) - 1}})), HasSubstr("RealMemory=1024 "));
}

TEST(SlurmFiles, GpusAreThoseOfTheHardware) {
  const LabLayout spark = lay_out_lab({});
  EXPECT_EQ(content_of(spark, kDebian12, "/etc/slurm/gres.conf"), "Name=gpu File=/run/yoke-lab/gpu0\n");
  const LabLayout b300 = lay_out_lab({.hardware = "b300"});
  EXPECT_THAT(slurm_conf(b300), HasSubstr(" Gres=gpu:8 "));
  EXPECT_THAT(content_of(b300, kDebian12, "/etc/slurm/gres.conf"), HasSubstr("File=/run/yoke-lab/gpu7\n"));
  const LabLayout none = lay_out_lab({.hardware = "none"});
  EXPECT_THAT(slurm_conf(none), Not(HasSubstr("Gres")));
  EXPECT_EQ(content_of(none, kDebian12, "/etc/slurm/gres.conf"), "no such file");
}

TEST(SlurmFiles, PmixIsTheDefaultOnlyWhereItIsThere) {
  SlurmHost host = kDebian12;
  EXPECT_THAT(slurm_conf(lay_out_lab({}), host), HasSubstr("MpiDefault=pmix\n"));
  host.pmix = SlurmHost::Pmix::kMissing;
  EXPECT_THAT(slurm_conf(lay_out_lab({}), host), HasSubstr("MpiDefault=none\n"));
}

TEST(SlurmFiles, CgroupsAreDisabledWhereTheReleaseKnowsTheWord) {
  const auto plugin = [](const char* version) {
    return content_of(lay_out_lab({}), {.version = version}, "/etc/slurm/cgroup.conf");
  };
  EXPECT_EQ(plugin("slurm-wlm 22.05.8"), "CgroupPlugin=cgroup/v1\n");
  EXPECT_EQ(plugin("slurm-wlm 23.11.4"), "CgroupPlugin=cgroup/v1\n");
  EXPECT_EQ(plugin("slurm 24.05.2"), "CgroupPlugin=disabled\n");
  EXPECT_EQ(plugin("slurm 25.11.0"), "CgroupPlugin=disabled\n");
  EXPECT_EQ(plugin(""), "CgroupPlugin=cgroup/v1\n");
  EXPECT_EQ(plugin("slurm of some kind"), "CgroupPlugin=cgroup/v1\n");
}

TEST(SlurmUnready, NamesEachNodeThatIsNotIdle) {
  const LabLayout layout = lay_out_lab({.nodes = 3});
  EXPECT_THAT(find_slurm_unready(layout, "spark-1 idle\nspark-2 idle\nspark-3 idle\n"), IsEmpty());
  EXPECT_THAT(find_slurm_unready(layout, "spark-1 idle\nspark-2 idle*\nspark-3 unknown*\n"),
              ElementsAre("spark-2 is 'idle*'", "spark-3 is 'unknown*'"));
  EXPECT_THAT(find_slurm_unready(layout, "spark-1 idle\n"),
              ElementsAre("spark-2 is unknown to Slurm", "spark-3 is unknown to Slurm"));
  EXPECT_EQ(find_slurm_unready(layout, "").size(), 3U);
  EXPECT_EQ(find_slurm_unready(layout, "slurm_load_partitions: Unable to contact slurm controller\n").size(), 3U);
}

}  // namespace
}  // namespace yoke::lab
