// ModelFiles::fingerprint: what tells one model from another without reading all of it.
#include <algorithm>
#include <string_view>

#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/weights/model_files.h"

namespace yoke::weights {
namespace {

// A page or two each. Cold on a disk that reads 10,000 times a second these are 50 ms, and loading reads them again.
constexpr std::size_t kTensorsSampled = 512;
constexpr std::size_t kSampleBytes = 1024;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Of the middle: the ends of a tensor are padding more often.
std::string_view middle_of(const SafetensorsFile& file, const TensorEntry& entry) {
  const std::size_t size = std::min<std::size_t>(kSampleBytes, entry.bytes());
  return as_text(file.mapping().bytes().subspan(entry.begin + (entry.bytes() - size) / 2, size));
}

}  // namespace

std::string ModelFiles::fingerprint() const {
  std::string all = print_json(config_, JsonLayout::kOneLine) + print_json(legacy_, JsonLayout::kOneLine);
  for (const auto& [name, file] : files_) {
    const std::string_view text = as_text(file->mapping().bytes());
    const std::uint64_t header = header_length(text.substr(0, kHeaderPrefixBytes), text.size(), file->path().native());
    all += name + ' ' + std::to_string(text.size());
    all += sha256_hex(text.substr(0, kHeaderPrefixBytes + header));
  }
  // Evenly spread over the names in order: so over the layers, and over the parts of a layer.
  const std::size_t count = std::min(kTensorsSampled, places_.size());
  std::size_t index = 0;
  std::size_t taken = 0;
  for (const auto& [name, place] : places_) {
    if (index++ * count < taken * places_.size()) continue;
    ++taken;
    all += middle_of(*place.file, *place.entry);
  }
  check_unchanged();
  return sha256_hex(all);
}

}  // namespace yoke::weights
