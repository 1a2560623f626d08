#include "yoke/weights/gguf_file.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"

namespace yoke::weights {
namespace {

constexpr std::uint64_t kMaxTensors = 200'000;
constexpr std::uint64_t kMaxKeys = 100'000;
constexpr std::uint64_t kMaxListValues = limits::kTokenizerValues;  // of all lists together
constexpr std::uint32_t kMaxAxes = 4;
constexpr std::int64_t kMaxAlignment = 1 << 20;

// The numbers of the kinds of metadata.
enum class Kind : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kList, kU64, kI64, kF64 };
constexpr std::uint32_t kKinds = 13;

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  GgufContent read() {
    read_start();
    const auto tensors = take<std::uint64_t>();
    const auto keys = take<std::uint64_t>();
    if (tensors > kMaxTensors || keys > kMaxKeys) {
      refuse(fmt::format("claims {} tensors and {} keys, which no model has", tensors, keys));
    }
    for (std::uint64_t i = 0; i < keys; ++i) read_key();
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors();
    return std::move(content_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the file {}", source_, what),
                "it is damaged, or not all of it is there: download it again");
  }
  [[noreturn]] void refuse_kind(const std::string& what) const {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: {}", source_, what),
                "yoke imports GGUF files of version 2 and 3 with F32, F16, BF16, Q8_0 and Q4_0 tensors");
  }

  template <class T>
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) refuse(fmt::format("ends within its header, after {} bytes", bytes_.size()));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string_view take_text() {
    const auto length = take<std::uint64_t>();
    if (length > bytes_.size() - at_)
      refuse(fmt::format("has a text of {} bytes at byte {}, beyond its end", length, at_));
    const auto* const begin = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += length;
    return {begin, length};
  }
  Kind take_kind() {
    const auto kind = take<std::uint32_t>();
    if (kind >= kKinds) refuse(fmt::format("has a value of unknown kind {}", kind));
    return static_cast<Kind>(kind);
  }

  void read_start() {
    constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
    if (bytes_.size() < 24 || take<std::uint32_t>() != kMagic) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} is no GGUF file", source_),
                  "a GGUF file begins with the letters GGUF; folders of safetensors need no import");
    }
    const auto version = take<std::uint32_t>();
    if (version != 2 && version != 3) refuse_kind(fmt::format("it is GGUF of version {}", version));
  }

  static std::size_t size_of(Kind kind) {
    switch (kind) {
      case Kind::kU8:
      case Kind::kI8:
      case Kind::kBool:
        return 1;
      case Kind::kU16:
      case Kind::kI16:
        return 2;
      case Kind::kU32:
      case Kind::kI32:
      case Kind::kF32:
        return 4;
      default:
        return 8;  // a text has at least its length
    }
  }
  std::int64_t take_integer(Kind kind) {
    switch (kind) {
      case Kind::kU8:
        return take<std::uint8_t>();
      case Kind::kI8:
        return take<std::int8_t>();
      case Kind::kBool:
        return take<std::uint8_t>() != 0 ? 1 : 0;
      case Kind::kU16:
        return take<std::uint16_t>();
      case Kind::kI16:
        return take<std::int16_t>();
      case Kind::kU32:
        return take<std::uint32_t>();
      case Kind::kI32:
        return take<std::int32_t>();
      default:
        return static_cast<std::int64_t>(take<std::uint64_t>());
    }
  }
  GgufValue take_value(Kind kind) {
    switch (kind) {
      case Kind::kF32:
        return static_cast<double>(take<float>());
      case Kind::kF64:
        return take<double>();
      case Kind::kBool:
        return take_integer(kind) != 0;
      case Kind::kText:
        return take_text();
      case Kind::kList:
        return take_list();
      default:
        return take_integer(kind);
    }
  }
  GgufList take_list() {
    const Kind kind = take_kind();
    const auto count = take<std::uint64_t>();
    if (kind == Kind::kList) refuse_kind("its metadata has lists of lists");
    if (count > kMaxListValues - list_values_ || count > (bytes_.size() - at_) / size_of(kind)) {
      refuse(fmt::format("claims a list of {} values, more than it has room for", count));
    }
    list_values_ += count;
    GgufList list;
    if (kind == Kind::kText) list.texts.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (kind == Kind::kText) {
        list.texts.push_back(take_text());
      } else if (kind == Kind::kF32 || kind == Kind::kF64) {
        list.reals.push_back(std::get<double>(take_value(kind)));
      } else {
        list.integers.push_back(take_integer(kind));
      }
    }
    return list;
  }

  void read_key() {
    const std::string_view key = take_text();
    if (key.size() > limits::kTensorNameBytes) refuse(fmt::format("has a key of {} bytes", key.size()));
    const Kind kind = take_kind();
    if (!content_.metadata.emplace(std::string(key), take_value(kind)).second) {
      refuse(fmt::format("has the key '{}' twice", printable(std::string(key), 60)));
    }
  }

  void read_tensor() {
    GgufTensor tensor{.name = take_text()};
    const std::string shown = printable(std::string(tensor.name), 60);
    if (tensor.name.size() > limits::kTensorNameBytes)
      refuse(fmt::format("has a name of {} bytes", tensor.name.size()));
    const auto axes = take<std::uint32_t>();
    if (axes < 1 || axes > kMaxAxes) refuse(fmt::format("has the tensor '{}' with {} axes", shown, axes));
    tensor.axes = static_cast<int>(axes);
    std::uint64_t count = 1;
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
      const auto extent = take<std::uint64_t>();
      if (extent < 1 || extent > std::uint64_t{1} << 40 || count > (std::uint64_t{1} << 46) / extent) {
        refuse(fmt::format("has the tensor '{}' of an impossible size", shown));
      }
      count *= extent;
      if (axis == 0) tensor.columns = static_cast<std::int64_t>(extent);
    }
    tensor.rows = static_cast<std::int64_t>(count) / tensor.columns;
    const auto type = take<std::uint32_t>();
    offsets_.push_back(take<std::uint64_t>());
    tensor.type = static_cast<GgufType>(type);
    const GgufBlock block = block_of(tensor.type);
    if (block.bytes == 0) refuse_kind(fmt::format("its tensor '{}' is of type {}", shown, gguf_type_name(type)));
    if (tensor.columns % block.values != 0) {
      refuse(fmt::format("has the tensor '{}' with rows of {} values, no multiple of {}", shown, tensor.columns,
                         block.values));
    }
    if (!names_.insert(tensor.name).second) refuse(fmt::format("has the tensor '{}' twice", shown));
    content_.tensors.push_back(tensor);
  }

  // Tensors lie behind the header, from the next multiple of the alignment on.
  void place_tensors() {
    std::int64_t alignment = 32;
    if (const auto found = content_.metadata.find("general.alignment"); found != content_.metadata.end()) {
      const auto* const given = std::get_if<std::int64_t>(&found->second);
      alignment = given != nullptr ? *given : 0;
      if (alignment < 1 || alignment > kMaxAlignment) refuse("has an impossible general.alignment");
    }
    const auto step = static_cast<std::uint64_t>(alignment);
    const std::uint64_t data = (at_ + step - 1) / step * step;
    for (std::size_t i = 0; i < content_.tensors.size(); ++i) {
      GgufTensor& tensor = content_.tensors[i];
      const GgufBlock block = block_of(tensor.type);
      const auto size = static_cast<std::uint64_t>(tensor.rows * (tensor.columns / block.values) * block.bytes);
      const std::uint64_t room = data <= bytes_.size() ? bytes_.size() - data : 0;
      if (offsets_[i] > room || size > room - offsets_[i]) {
        refuse(fmt::format("ends before its tensor '{}' does", printable(std::string(tensor.name), 60)));
      }
      tensor.bytes = bytes_.subspan(data + offsets_[i], size);
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::uint64_t list_values_ = 0;
  GgufContent content_;
  std::vector<std::uint64_t> offsets_;
  std::set<std::string_view> names_;
};

}  // namespace

GgufBlock block_of(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return {1, 4};
    case GgufType::kF16:
    case GgufType::kBf16:
      return {1, 2};
    case GgufType::kQ4_0:
      return {32, 18};
    case GgufType::kQ8_0:
      return {32, 34};
  }
  return {};
}

std::string gguf_type_name(std::uint32_t number) {
  static const std::map<std::uint32_t, const char*> names = {
      {0, "F32"},      {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},   {6, "Q5_0"},    {7, "Q5_1"},   {8, "Q8_0"},
      {9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {12, "Q4_K"},  {13, "Q5_K"},   {14, "Q6_K"},  {15, "Q8_K"},
      {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},
      {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"},
      {30, "BF16"},    {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"}};
  const auto found = names.find(number);
  return found != names.end() ? found->second : fmt::format("{}", number);
}

GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& source) {
  return GgufReader(bytes, source).read();
}

GgufFile::GgufFile(const std::filesystem::path& file)
    : source_(file.native()),
      file_(std::make_unique<MappedFile>(file)),
      content_(parse_gguf(file_->bytes(), source_)) {}

const GgufTensor* GgufFile::find(std::string_view name) const {
  for (const GgufTensor& tensor : content_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

void GgufFile::missing(std::string_view key) const {
  throw Error(ErrorCode::kInvalid, fmt::format("{}: the metadata has no usable '{}'", source_, key),
              "the file was made by a program that leaves it out: make it again from the original model");
}

template <class T>
const T* GgufFile::get(std::string_view key) const {
  const auto found = content_.metadata.find(key);
  if (found == content_.metadata.end()) return nullptr;
  const T* const value = std::get_if<T>(&found->second);
  if (value == nullptr) missing(key);
  return value;
}

std::optional<std::string> GgufFile::text(std::string_view key) const {
  const auto* const value = get<std::string_view>(key);
  return value != nullptr ? std::optional<std::string>(*value) : std::nullopt;
}
std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const auto* const value = get<std::int64_t>(key);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}
std::optional<double> GgufFile::real(std::string_view key) const {
  const auto* const value = get<double>(key);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}
std::optional<bool> GgufFile::flag(std::string_view key) const {
  const auto* const value = get<bool>(key);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}
const GgufList* GgufFile::list(std::string_view key) const { return get<GgufList>(key); }

std::string GgufFile::required_text(std::string_view key) const {
  const auto value = text(key);
  if (!value) missing(key);
  return *value;
}
std::int64_t GgufFile::required_size(std::string_view key) const {
  const auto value = integer(key);
  if (!value || *value < 1 || *value > std::int64_t{1} << 31) missing(key);
  return *value;
}

}  // namespace yoke::weights
