// One test body over both trees: a folder on disk and memory.
#include "yoke/base/file_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

namespace fs = std::filesystem;

// A piece of sysfs: a device folder, a class link to it, an absolute link, a loop.
struct TreeOnDisk {
  TreeOnDisk() {
    fs::create_directories(scratch.path() / "sys/devices/pci0/0000:01:00.0");
    fs::create_directories(scratch.path() / "sys/class/net");
    write_file_atomically(scratch.path() / "sys/devices/pci0/0000:01:00.0/vendor", "0x15b3\n");
    fs::create_symlink("../../devices/pci0/0000:01:00.0", scratch.path() / "sys/class/net/eth0");
    fs::create_symlink("/sys/class/net/eth0", scratch.path() / "sys/absolute");
    fs::create_symlink("loop", scratch.path() / "sys/loop");
    fs::create_symlink("../../../../../../etc/passwd", scratch.path() / "sys/escape");
    tree = std::make_unique<DiskTree>(scratch.path());
  }
  ScratchDir scratch;
  std::unique_ptr<FileTree> tree;
};

struct TreeInMemory {
  TreeInMemory() {
    auto memory = std::make_unique<MemoryTree>();
    memory->add_file("/sys/devices/pci0/0000:01:00.0/vendor", "0x15b3\n");
    memory->add_link("/sys/class/net/eth0", "../../devices/pci0/0000:01:00.0");
    memory->add_link("/sys/absolute", "/sys/class/net/eth0");
    memory->add_link("/sys/loop", "loop");
    memory->add_link("/sys/escape", "../../../../../../etc/passwd");
    tree = std::move(memory);
  }
  std::unique_ptr<FileTree> tree;
};

template <class Maker>
struct FileTreeTest : testing::Test, Maker {};
using Makers = testing::Types<TreeOnDisk, TreeInMemory>;
TYPED_TEST_SUITE(FileTreeTest, Makers);

TYPED_TEST(FileTreeTest, ReadsThroughRelativeAndAbsoluteLinks) {
  EXPECT_EQ(this->tree->read("/sys/class/net/eth0/vendor"), "0x15b3\n");
  EXPECT_EQ(this->tree->read_trimmed("/sys/class/net/eth0/vendor"), "0x15b3");
  EXPECT_EQ(this->tree->read("/sys/absolute/vendor"), "0x15b3\n");
  EXPECT_EQ(this->tree->read("/sys//class/./net/eth0/../0000:01:00.0/vendor"), "0x15b3\n");
}

TYPED_TEST(FileTreeTest, AnswersNothingForWhatIsAbsent) {
  EXPECT_EQ(this->tree->read("/sys/class/net/eth1/vendor"), std::nullopt);
  EXPECT_EQ(this->tree->read("/sys/class"), std::nullopt);
  EXPECT_EQ(this->tree->read("/sys/loop"), std::nullopt);
  EXPECT_TRUE(this->tree->list("/sys/class/none").empty());
  EXPECT_EQ(this->tree->link("/sys/class/net/eth0/vendor"), std::nullopt);
}

TYPED_TEST(FileTreeTest, NeverLeavesItsRoot) { EXPECT_EQ(this->tree->read("/sys/escape"), std::nullopt); }

TYPED_TEST(FileTreeTest, ListsSortedNames) {
  EXPECT_EQ(this->tree->list("/sys"), (std::vector<std::string>{"absolute", "class", "devices", "escape", "loop"}));
  EXPECT_EQ(this->tree->list("/sys/class/net/eth0"), std::vector<std::string>{"vendor"});
}

TYPED_TEST(FileTreeTest, ReportsALinksTargetAndWhereItLeads) {
  EXPECT_EQ(this->tree->link("/sys/class/net/eth0"), "../../devices/pci0/0000:01:00.0");
  EXPECT_EQ(this->tree->resolve("/sys/absolute"), "/sys/devices/pci0/0000:01:00.0");
}

TYPED_TEST(FileTreeTest, KnowsFilesAndFoldersThatAreThere) {
  for (const char* path : {"/", "/sys/class", "/sys/class/net/eth0", "/sys/class/net/eth0/vendor", "/sys/absolute"}) {
    EXPECT_TRUE(this->tree->exists(path)) << path;
  }
  for (const char* path : {"/sys/class/net/eth1", "/sys/loop", "/sys/escape", "/sys/class/net/eth0/vendor/x"}) {
    EXPECT_FALSE(this->tree->exists(path)) << path;
  }
}

TEST(MemoryTree, RemovesAPathWithEverythingBelow) {
  MemoryTree tree;
  tree.add_file("/a/b/c", "1");
  tree.add_file("/a/bc", "2");
  tree.remove("/a/b");
  EXPECT_EQ(tree.list("/a"), std::vector<std::string>{"bc"});
}

// To open one waits until somebody writes to it: a probe of a machine would hang.
TEST(DiskTree, ANamedPipeHasNoContentAndIsNotWaitedFor) {
  const ScratchDir scratch("yoke-tree");
  ASSERT_EQ(mkfifo((scratch.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(DiskTree(scratch.path()).read("/pipe"), std::nullopt);
}

TEST(DiskTree, ReadsThisMachine) {
  const DiskTree tree;
  EXPECT_TRUE(tree.read("/proc/meminfo")->starts_with("MemTotal:"));
  EXPECT_FALSE(tree.list("/proc/self").empty());
}

}  // namespace
}  // namespace yoke
