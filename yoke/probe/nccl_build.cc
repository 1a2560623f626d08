#include "yoke/probe/nccl_build.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace yoke::probe {
namespace {

constexpr std::uint64_t kMaxSections = 4096;
constexpr std::uint64_t kMaxNames = 1 << 20;
constexpr std::uint64_t kMaxText = 64 << 20;  // of .rodata, where the version is
constexpr int kMaxImages = 100'000;           // an NCCL has about a thousand

template <class T>
std::optional<T> read_struct(const ReadBytes& read, std::uint64_t offset) {
  const std::string bytes = read(offset, sizeof(T));
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct Section {
  std::string name;
  std::uint64_t offset = 0, size = 0;
};

std::vector<Section> sections_of(const ReadBytes& read, std::uint64_t file_size) {
  const auto header = read_struct<Elf64_Ehdr>(read, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return {};
  }
  std::vector<Elf64_Shdr> rows;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header->e_shnum, kMaxSections); ++i) {
    const auto row = read_struct<Elf64_Shdr>(read, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!row) return {};
    rows.push_back(*row);
  }
  if (header->e_shstrndx >= rows.size()) return {};
  const Elf64_Shdr& name_row = rows[header->e_shstrndx];
  const std::string names = read(name_row.sh_offset, std::min<std::uint64_t>(name_row.sh_size, kMaxNames));
  std::vector<Section> sections;
  for (const Elf64_Shdr& row : rows) {
    if (row.sh_name >= names.size() || row.sh_type == SHT_NOBITS || row.sh_offset > file_size) continue;
    sections.push_back({.name = names.c_str() + row.sh_name,
                        .offset = row.sh_offset,
                        .size = std::min<std::uint64_t>(row.sh_size, file_size - row.sh_offset)});
  }
  return sections;
}

// A note is three numbers (sizes of name and content, type), the name and the content, each padded to four bytes.
std::optional<std::string> read_build_id(const ReadBytes& read, const Section& section) {
  const auto note = read_struct<Elf64_Nhdr>(read, section.offset);
  constexpr std::uint32_t kMaxId = 64;
  if (!note || note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 || note->n_descsz > kMaxId) return std::nullopt;
  std::string text;
  for (const char byte : read(section.offset + sizeof *note + 4, note->n_descsz)) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text.empty() ? std::nullopt : std::optional(text);
}

// "NCCL version 2.28.9+cuda13.0" stands there once as a text of its own.
std::optional<std::string> read_version(const ReadBytes& read, const Section& section) {
  constexpr std::string_view kBefore = "NCCL version ";
  const std::string text = read(section.offset, std::min<std::uint64_t>(section.size, kMaxText));
  std::optional<std::string> plain;  // "2.28.9 compiled with CUDA 13.0" says less
  for (std::size_t at = text.find(kBefore); at != std::string::npos; at = text.find(kBefore, at + 1)) {
    const std::size_t begin = at + kBefore.size();
    const std::size_t end =
        std::min(text.find_first_not_of("0123456789.+-abcdefghijklmnopqrstuvwxyz", begin), begin + 40);
    const std::string version = text.substr(begin, end - begin);
    if (version.empty() || version.front() < '0' || version.front() > '9') continue;
    if (version.find("+cuda") != std::string::npos) return version;
    plain = version;
  }
  return plain;
}

struct FatHeader {  // of a group of images; all numbers little-endian
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;  // of all that follows
};
struct FatImage {
  std::uint16_t kind, version;
  std::uint32_t header_size;
  std::uint64_t size;
  std::uint32_t compressed_size, reserved;
  std::uint16_t minor, major;
  std::uint32_t architecture;  // 90, 121
};
constexpr std::uint32_t kFatMagic = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1, kMachineCode = 2;

void read_images(const ReadBytes& read, const Section& section, std::set<std::uint32_t>& code,
                 std::set<std::uint32_t>& ptx) {
  const std::uint64_t end = section.offset + section.size;
  int images = 0;
  for (std::uint64_t at = section.offset; at + sizeof(FatHeader) <= end && images < kMaxImages;) {
    const auto group = read_struct<FatHeader>(read, at);
    if (!group || group->magic != kFatMagic || group->header_size < sizeof(FatHeader)) return;
    if (group->size > end - at) return;
    std::uint64_t image_at = at + group->header_size;
    at = image_at + group->size;
    while (image_at + sizeof(FatImage) <= std::min(at, end) && images < kMaxImages) {
      ++images;
      const auto image = read_struct<FatImage>(read, image_at);
      if (!image || image->header_size < sizeof(FatImage) || image->size > end) return;
      if (image->kind == kMachineCode) code.insert(image->architecture);
      if (image->kind == kPtx) ptx.insert(image->architecture);
      image_at += image->header_size + image->size;
    }
  }
}

}  // namespace

spec::NcclBuild inspect_nccl(std::string path, std::uint64_t size, const ReadBytes& read) {
  spec::NcclBuild build{.path = std::move(path), .size = Bytes{static_cast<std::int64_t>(size)}};
  std::set<std::uint32_t> code;
  std::set<std::uint32_t> ptx;
  for (const Section& section : sections_of(read, size)) {
    if (section.name == ".note.gnu.build-id") build.build_id = read_build_id(read, section);
    if (section.name == ".rodata") build.version = read_version(read, section);
    if (section.name == ".nv_fatbin" || section.name == "__nv_relfatbin") read_images(read, section, code, ptx);
  }
  for (const std::uint32_t architecture : code) build.architectures.push_back(fmt::format("sm_{}", architecture));
  for (const std::uint32_t architecture : ptx) build.ptx.push_back(fmt::format("compute_{}", architecture));
  return build;
}

}  // namespace yoke::probe
