#include "yoke/weights/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/weights/header.h"

namespace yoke::weights {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::size_t kDataAlignment = 64;  // of the first tensor; those after it follow without holes, as they must

Error cannot_write(const std::filesystem::path& file) {
  const int failure = errno;
  return system_error(failure, fmt::format("cannot write {}", file.native()),
                      failure == ENOSPC || failure == EDQUOT ? "make room on the disk, or choose another folder" : "");
}

Document offsets_of(const TensorDeclaration& tensor, std::uint64_t begin, std::uint64_t end) {
  Document shape = Document::list();
  for (const std::int64_t extent : tensor.shape.extents()) shape.items.push_back(Document::number(extent));
  const auto number = [](std::uint64_t value) { return Document::number(static_cast<std::int64_t>(value)); };
  Document entry = Document::map();
  entry.add("dtype", Document::string(std::string(safetensors_name(tensor.type))));
  entry.add("shape", std::move(shape));
  entry.add("data_offsets", Document::list({number(begin), number(end)}));
  return entry;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path file, const std::vector<TensorDeclaration>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(std::move(file)) {
  Document header = Document::map();
  Document notes = Document::map();
  for (const auto& [key, value] : metadata) notes.add(key, Document::string(value));
  if (!metadata.empty()) header.add("__metadata__", std::move(notes));
  std::set<std::string> names = {"__metadata__"};
  for (const TensorDeclaration& tensor : tensors) {
    YOKE_CHECK(names.insert(tensor.name).second, "the tensor '{}' is declared twice", tensor.name);
    const std::uint64_t begin = expected_;
    expected_ += static_cast<std::uint64_t>(tensor.size().value);
    header.add(tensor.name, offsets_of(tensor, begin, expected_));
  }
  std::string json = print_json(header, JsonLayout::kOneLine);
  json.append((kDataAlignment - (kHeaderPrefixBytes + json.size()) % kDataAlignment) % kDataAlignment, ' ');

  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file_, ignored))) {
    throw Error(ErrorCode::kConflict, fmt::format("{} exists already", file_.native()), "remove it, or choose another");
  }
  temporary_ = fmt::format("{}.XXXXXX", file_.native());
  fd_ = UniqueFd(mkostemp(temporary_.data(), O_CLOEXEC));
  if (!fd_) throw cannot_write(file_);
  try {
    const std::uint64_t size = kHeaderPrefixBytes + json.size() + expected_;
    // File systems that cannot reserve say so, and the disk is then found full when it is.
    if (fallocate(fd_.get(), 0, 0, static_cast<off_t>(size)) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
      throw cannot_write(file_);
    }
    for (std::size_t i = 0; i < kHeaderPrefixBytes; ++i) buffer_ += static_cast<char>(json.size() >> (8 * i) & 0xff);
    buffer_ += json;
  } catch (...) {
    unlink(temporary_.c_str());  // a constructor that throws has no destructor
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void SafetensorsWriter::append(std::span<const std::byte> data) {
  YOKE_CHECK(data.size() <= expected_ - appended_, "{} bytes after {} of {}", data.size(), appended_, expected_);
  appended_ += data.size();
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  if (buffer_.size() + text.size() <= kBufferBytes) {
    buffer_ += text;
    return;
  }
  flush();
  if (text.size() > kBufferBytes) {
    write_all(fd_, text, file_);
  } else {
    buffer_ = text;
  }
}

void SafetensorsWriter::flush() {
  write_all(fd_, buffer_, file_);
  buffer_.clear();
}

void SafetensorsWriter::finish() {
  YOKE_CHECK(appended_ == expected_ && !temporary_.empty(), "{} of {} bytes", appended_, expected_);
  flush();
  if (fchmod(fd_.get(), 0644) != 0 || fsync(fd_.get()) != 0) throw cannot_write(file_);
  if (rename(temporary_.c_str(), file_.c_str()) != 0) throw cannot_write(file_);
  temporary_.clear();
}

}  // namespace yoke::weights
