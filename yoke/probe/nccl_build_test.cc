#include "yoke/probe/nccl_build.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

namespace yoke::probe {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct ImageHeader {
  std::uint16_t kind, version = 0x101;
  std::uint32_t header_size = 64;
  std::uint64_t size;
  std::uint32_t compressed = 0, reserved = 0;
  std::uint16_t minor = 0, major = 1;
  std::uint32_t architecture;
};

// As nvcc lays them out: an entry of 64 bytes before each image.
std::string image(std::uint16_t kind, std::uint32_t architecture, std::size_t size) {
  std::string text = bytes_of(ImageHeader{.kind = kind, .size = size, .architecture = architecture});
  text.resize(64 + size, '\x5a');
  return text;
}

std::string group(const std::string& images) {
  struct {
    std::uint32_t magic = 0xBA55ED50;
    std::uint16_t version = 1, header_size = 16;
    std::uint64_t size;
  } header{.size = images.size()};
  return bytes_of(header) + images;
}

// A file with only what is looked at: sections, their names and their contents.
std::string elf_file(const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string names(1, '\0');
  std::string contents;
  std::vector<Elf64_Shdr> rows(1);
  const auto add = [&](const std::string& name, const std::string& content) {
    Elf64_Shdr row{};
    row.sh_name = static_cast<std::uint32_t>(names.size());
    row.sh_type = SHT_PROGBITS;
    row.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
    row.sh_size = content.size();
    rows.push_back(row);
    names += name + '\0';
    contents += content;
  };
  for (const auto& [name, content] : sections) add(name, content);
  names += ".shstrtab";
  names += '\0';
  Elf64_Shdr row{};
  row.sh_name = static_cast<std::uint32_t>(names.size() - 10);
  row.sh_type = SHT_STRTAB;
  row.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
  row.sh_size = names.size();
  rows.push_back(row);
  contents += names;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header + contents.size();
  header.e_shnum = static_cast<std::uint16_t>(rows.size());
  header.e_shstrndx = static_cast<std::uint16_t>(rows.size() - 1);
  std::string file = bytes_of(header) + contents;
  for (const Elf64_Shdr& each : rows) file += bytes_of(each);
  return file;
}

spec::NcclBuild inspect(const std::string& file) {
  return inspect_nccl("/lib/libnccl.so.2", file.size(), [&](std::uint64_t offset, std::size_t size) {
    return offset > file.size() ? "" : file.substr(offset, size);
  });
}

std::string build_id_note(const std::string& id) {
  return bytes_of(Elf64_Nhdr{.n_namesz = 4, .n_descsz = static_cast<std::uint32_t>(id.size()), .n_type = 3}) +
         std::string("GNU\0", 4) + id;
}

const std::string kText("NCCL version 2.28.9 compiled with CUDA 13.0\0NCCL version 2.28.9+cuda13.0\0", 74);

TEST(NcclBuild, ReportsVersionBuildIdAndArchitectures) {
  const spec::NcclBuild build = inspect(elf_file(
      {{".note.gnu.build-id", build_id_note("\x9f\xcf\x74\xd9")},
       {".rodata", "something " + kText},
       {"__nv_relfatbin", group(image(2, 90, 100) + image(2, 121, 8)) + group(image(1, 120, 24) + image(2, 90, 0))},
       {".nv_fatbin", group(image(2, 75, 16))}}));
  EXPECT_EQ(build.version, "2.28.9+cuda13.0");
  EXPECT_EQ(build.build_id, "9fcf74d9");
  EXPECT_EQ(build.architectures, (std::vector<std::string>{"sm_75", "sm_90", "sm_121"}));
  EXPECT_EQ(build.ptx, std::vector<std::string>{"compute_120"});
}

TEST(NcclBuild, ReportsTheVersionAloneOfABuildWithoutTheToolkitsName) {
  EXPECT_EQ(inspect(elf_file({{".rodata", "NCCL version 2.18.1 compiled"}})).version, "2.18.1");
  EXPECT_EQ(inspect(elf_file({{".rodata", "NCCL version mismatch"}})).version, std::nullopt);
}

TEST(NcclBuild, ReportsNothingAboutWhatIsNoLibrary) {
  for (const std::string& file : {std::string(), std::string("#!/bin/sh\n"), std::string(4096, '\x7f')}) {
    const spec::NcclBuild build = inspect(file);
    EXPECT_EQ(build.version, std::nullopt);
    EXPECT_TRUE(build.architectures.empty());
    EXPECT_EQ(build.size, Bytes{static_cast<std::int64_t>(file.size())});
  }
}

TEST(NcclBuild, TakesWhatThereIsOfAFileThatIsCutShort) {
  const std::string whole = elf_file({{".rodata", kText}, {".nv_fatbin", group(image(2, 90, 100))}});
  const spec::NcclBuild known = inspect(whole);
  ASSERT_TRUE(known.version);
  ASSERT_EQ(known.architectures, std::vector<std::string>{"sm_90"});
  spec::NcclBuild shorter;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const spec::NcclBuild build = inspect(whole.substr(0, size));
    EXPECT_TRUE(!build.version || build.version == known.version) << size;
    EXPECT_TRUE(build.architectures.empty() || build.architectures == known.architectures) << size;
    EXPECT_TRUE(build.version || !shorter.version) << size << " bytes tell less than one byte fewer";
    EXPECT_GE(build.architectures.size(), shorter.architectures.size()) << size;
    shorter = build;
  }
}

TEST(NcclBuild, OfThisMachineHasAVersion) {
  const std::vector<spec::NcclBuild> builds = find_nccl_builds();
  if (builds.empty()) GTEST_SKIP() << "there is no NCCL on this machine";
  for (const spec::NcclBuild& build : builds) {
    EXPECT_TRUE(build.version && build.version->starts_with("2.")) << build.path;
    EXPECT_FALSE(build.architectures.empty()) << build.path;
  }
}

}  // namespace
}  // namespace yoke::probe
