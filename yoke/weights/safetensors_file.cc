#include "yoke/weights/safetensors_file.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::weights {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file)
    : mapping_(std::make_shared<const MappedFile>(file)) {
  const std::span<const std::byte> bytes = mapping_->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::uint64_t length = header_length(text.substr(0, kHeaderPrefixBytes), bytes.size(), file.native());
  header_ = parse_header(text.substr(kHeaderPrefixBytes, length), bytes.size(), file.native());
  mapping_->check_unchanged();
  for (std::size_t i = 0; i < header_.entries.size(); ++i) places_.emplace(header_.entries[i].name, i);
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &header_.entries[place->second];
}

tensor::Tensor SafetensorsFile::view(const TensorEntry& entry) const {
  if (!entry.type) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: the tensor '{}' holds {}, which yoke does not read",
                                                     path().native(), printable(entry.name, 120), entry.stored_type));
  }
  mapping_->check_unchanged();
  return {tensor::Storage::mapped(mapping_->bytes().subspan(entry.begin, entry.bytes()), mapping_), entry.shape,
          *entry.type};
}

}  // namespace yoke::weights
