#include "yoke/weights/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"

namespace yoke::weights {
namespace {

struct StoredType {
  std::string_view name;
  unsigned bits;
  std::optional<tensor::DType> type;
};
// All types of the format, so that a file may hold tensors that nobody asks for.
constexpr auto kStoredTypes = std::to_array<StoredType>({
    {"F32", 32, tensor::DType::kF32},
    {"BF16", 16, tensor::DType::kBf16},
    {"F16", 16, tensor::DType::kF16},
    {"I8", 8, tensor::DType::kI8},
    {"I32", 32, tensor::DType::kI32},
    {"F8_E4M3", 8, tensor::DType::kF8E4m3},
    {"F8_E5M2", 8, tensor::DType::kF8E5m2},
    {"F8_E8M0", 8, tensor::DType::kF8E8m0},
    {"U8", 8, tensor::DType::kU8},
    {"BOOL", 8, tensor::DType::kBool},
    {"I16", 16, tensor::DType::kI16},
    {"U16", 16, tensor::DType::kU16},
    {"U32", 32, tensor::DType::kU32},
    {"I64", 64, tensor::DType::kI64},
    {"U64", 64, tensor::DType::kU64},
    {"F64", 64, tensor::DType::kF64},
    {"C64", 64, std::nullopt},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
});

constexpr std::string_view kHint = "the file is damaged or was not written by safetensors: fetch it again";

class HeaderReader {
 public:
  HeaderReader(std::uint64_t data_start, std::uint64_t file_size, const std::string& file)
      : data_start_(data_start), file_size_(file_size), file_(file) {}

  TensorEntry read_entry(const std::string& name, const Document& document) const {
    check_tensor_name(name, file_);
    TensorEntry entry{.name = name};
    entry.stored_type = from_json<std::string>(field(name, document, "dtype"));
    const auto stored = std::find_if(kStoredTypes.begin(), kStoredTypes.end(),
                                     [&](const StoredType& type) { return type.name == entry.stored_type; });
    if (stored == kStoredTypes.end()) {
      refuse(name, fmt::format("has the unknown element type '{}'", printable(entry.stored_type, 40)));
    }
    entry.type = stored->type;
    const auto extents = from_json<std::vector<std::int64_t>>(field(name, document, "shape"));
    const auto offsets = from_json<std::vector<std::uint64_t>>(field(name, document, "data_offsets"));
    if (document.fields.size() != 3) refuse(name, "has other fields than dtype, shape and data_offsets");
    if (extents.size() > tensor::Shape::kMaxRank) refuse(name, fmt::format("has {} axes", extents.size()));
    if (offsets.size() != 2) refuse(name, "does not have two data_offsets");
    check_place(name, extents, offsets[0], offsets[1], stored->bits);
    entry.shape = tensor::Shape(extents);
    entry.begin = data_start_ + offsets[0];
    entry.end = data_start_ + offsets[1];
    return entry;
  }

  void check_coverage(const std::vector<TensorEntry>& entries) const {
    std::uint64_t at = data_start_;
    for (const TensorEntry& entry : entries) {
      if (entry.begin < at) refuse(entry.name, "overlaps the tensor before it");
      if (entry.begin > at) refuse(entry.name, fmt::format("leaves a hole of {} bytes before it", entry.begin - at));
      at = entry.end;
    }
    if (at != file_size_) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: {} bytes follow the last tensor", file_, file_size_ - at),
                  std::string(kHint));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the tensor '{}' {}", file_, printable(name, 120), what),
                std::string(kHint));
  }

  const Document& field(const std::string& name, const Document& document, std::string_view key) const {
    const Document* const found = document.find(key);
    if (found == nullptr) refuse(name, fmt::format("has no {}", key));
    return *found;
  }

  void check_place(const std::string& name, const std::vector<std::int64_t>& extents, std::uint64_t begin,
                   std::uint64_t end, unsigned bits) const {
    const std::uint64_t data_size = file_size_ - data_start_;
    if (begin > end || end > data_size) {
      refuse(name, fmt::format("claims bytes {} to {} of the {} there are", begin, end, data_size));
    }
    const auto count = tensor::checked_count(extents);
    // A count of more elements than bits in the file is a lie before it is multiplied.
    const bool fits = count && static_cast<std::uint64_t>(*count) <= data_size * 8;
    if (!fits || static_cast<std::uint64_t>(*count) * bits % 8 != 0 ||
        static_cast<std::uint64_t>(*count) * bits / 8 != end - begin) {
      refuse(name, fmt::format("has {} bytes, which are not those of its shape [{}] and type", end - begin,
                               fmt::join(extents, ", ")));
    }
  }

  std::uint64_t data_start_;
  std::uint64_t file_size_;
  const std::string& file_;
};

}  // namespace

void check_tensor_name(const std::string& name, const std::string& file) {
  if (name.size() <= limits::kTensorNameBytes) return;
  throw Error(ErrorCode::kInvalid, fmt::format("{}: the name of the tensor '{}' has {} bytes, more than {}", file,
                                               printable(name, 60), name.size(), limits::kTensorNameBytes));
}

std::uint64_t header_length(std::string_view first_bytes, std::uint64_t file_size, const std::string& file) {
  if (file_size < kHeaderPrefixBytes || first_bytes.size() < kHeaderPrefixBytes) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} is {} bytes long: too short for a safetensors file", file, file_size),
                std::string(kHint));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kHeaderPrefixBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(first_bytes[i]);
  }
  if (length > kMaxHeaderBytes || length > file_size - kHeaderPrefixBytes) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: the header claims {} bytes, in a file of {}", file, length, file_size),
                std::string(kHint));
  }
  return length;
}

SafetensorsHeader parse_header(std::string_view json, std::uint64_t file_size, const std::string& file) {
  // Writers may put white space before it, to align the data.
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || json[first] != '{') {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the header is not a JSON object", file), std::string(kHint));
  }
  const Document document = parse_json(json, fmt::format("the header of {}", file));
  const HeaderReader reader(kHeaderPrefixBytes + json.size(), file_size, file);
  SafetensorsHeader header;
  for (const auto& [name, value] : document.fields) {
    if (name == "__metadata__") {
      if (value.kind != Document::Kind::kMap) refuse_field(value, "a map of texts");
      for (const auto& [key, text] : value.fields) header.metadata[key] = from_json<std::string>(text);
    } else {
      header.entries.push_back(reader.read_entry(name, value));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  reader.check_coverage(header.entries);
  return header;
}

std::string_view safetensors_name(tensor::DType type) {
  for (const StoredType& stored : kStoredTypes) {
    if (stored.type == type) return stored.name;
  }
  return "?";
}

}  // namespace yoke::weights
