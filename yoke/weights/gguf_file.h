// A GGUF file, the format of llama.cpp: what it says of the model, and where its tensors lie. Versions 2 and 3, little
// endian (github.com/ggml-org/ggml, docs/gguf.md). Reads from hostile files: every length is checked before it is used.
//
//   const GgufFile file("model.gguf");
//   file.text("general.architecture") == "llama"
//   for (const GgufTensor& tensor : file.tensors()) …
//
// Views into the mapped file: the object must outlive them. Any thread may read it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "yoke/weights/mapped_file.h"

namespace yoke::weights {

// How values are stored, by the numbers of ggml; those that yoke reads.
enum class GgufType : std::uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kBf16 = 30 };
struct GgufBlock {
  std::int64_t values = 1;
  std::int64_t bytes = 0;
};
GgufBlock block_of(GgufType type);
std::string gguf_type_name(std::uint32_t number);  // of types that yoke does not read, too

struct GgufTensor {
  std::string_view name;
  std::int64_t rows = 1;     // all axes but the fastest
  std::int64_t columns = 0;  // the fastest axis
  int axes = 1;
  GgufType type = GgufType::kF32;
  std::span<const std::byte> bytes;  // rows * columns / block.values * block.bytes
};

// A list of metadata: texts, or whole numbers, or reals.
struct GgufList {
  std::vector<std::string_view> texts;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
};
using GgufValue = std::variant<std::int64_t, double, bool, std::string_view, GgufList>;

// What the bytes of a file say; apart from the file, so that it can be fuzzed. kInvalid where they are broken,
// kUnsupported where they are of a kind that yoke does not read. `source` names the file in errors.
struct GgufContent {
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;
};
GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& source);

class GgufFile {
 public:
  explicit GgufFile(const std::filesystem::path& file);

  const std::string& source() const { return source_; }
  const std::vector<GgufTensor>& tensors() const { return content_.tensors; }
  const GgufTensor* find(std::string_view name) const;
  void check_unchanged() const { file_->check_unchanged(); }

  // kInvalid where the value is of another kind, or missing and `required`.
  bool has(std::string_view key) const { return content_.metadata.contains(key); }
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  const GgufList* list(std::string_view key) const;
  std::string required_text(std::string_view key) const;
  std::int64_t required_size(std::string_view key) const;  // 1 to 2^31

 private:
  template <class T>
  const T* get(std::string_view key) const;
  [[noreturn]] void missing(std::string_view key) const;

  std::string source_;
  std::unique_ptr<MappedFile> file_;
  GgufContent content_;
};

}  // namespace yoke::weights
