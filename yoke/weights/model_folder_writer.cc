#include "yoke/weights/model_folder_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"

namespace yoke::weights {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kHeaderBytesPerTensor = 200;  // name, shape and offsets in the header and in the index

// The place with links followed and without a slash at the end, so that it can be renamed to.
fs::path resolved(const fs::path& folder) {
  std::error_code failure;
  fs::path place = fs::weakly_canonical(fs::absolute(folder), failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot look at {}", folder.native()));
  return place.has_filename() ? place : place.parent_path();
}

void check_place(const fs::path& folder) {
  std::error_code failure;
  const fs::file_status status = fs::status(folder, failure);
  if (status.type() == fs::file_type::not_found) {
    if (fs::is_directory(folder.parent_path(), failure)) return;
    throw Error(ErrorCode::kNotFound, fmt::format("there is no folder {} to put it in", folder.parent_path().native()),
                fmt::format("make it first: mkdir -p {}", folder.parent_path().native()));
  }
  if (status.type() != fs::file_type::directory) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is there already, and is no folder", folder.native()),
                "give the name of a new folder");
  }
  const bool is_empty = fs::is_empty(folder, failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot look into {}", folder.native()));
  if (!is_empty) {
    throw Error(ErrorCode::kConflict, fmt::format("{} is there already, and is not empty", folder.native()),
                "give the name of a new folder: nothing is overwritten");
  }
}

void check_room(const fs::path& folder, Bytes needed) {
  std::error_code failure;
  const fs::space_info space = fs::space(folder.parent_path(), failure);
  if (failure) return;  // a file system that does not say is found full when it is
  const Bytes available{static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX))};
  if (needed <= available) return;
  throw Error(
      ErrorCode::kExhausted,
      fmt::format("{} needs {}, but its disk has {} left", folder.native(), to_string(needed), to_string(available)),
      "make room, choose a folder on another disk, or ask for fewer layers");
}

fs::path make_temporary(const fs::path& folder) {
  std::string name = folder.parent_path() / fmt::format(".{}.XXXXXX", folder.filename().native());
  if (mkdtemp(name.data()) == nullptr) {
    throw system_error(errno, fmt::format("cannot make a folder in {}", folder.parent_path().native()),
                       errno == EACCES || errno == EROFS ? "choose a folder that you may write to" : "");
  }
  return name;
}

}  // namespace

ModelFolderWriter::ModelFolderWriter(const fs::path& folder, std::vector<TensorDeclaration> tensors,
                                     const ModelFolderOptions& options)
    : folder_(resolved(folder)), start_(real_clock().now()) {
  if (options.shard_size < kMinShardSize) {
    throw Error(ErrorCode::kUsage, fmt::format("a shard of {} is too small", to_string(options.shard_size)),
                "1MB or more; 5GB is usual");
  }
  YOKE_CHECK(!tensors.empty());
  check_place(folder_);
  const auto headers = static_cast<std::int64_t>(tensors.size()) * kHeaderBytesPerTensor;
  divide(std::move(tensors), options.shard_size);
  check_room(folder_, Bytes{static_cast<std::int64_t>(total_) + headers} + options.other_files);
  progress_ =
      std::make_unique<Progress>(fmt::format("writing {}", folder_.native()), static_cast<std::int64_t>(total_));
  temporary_ = make_temporary(folder_);
}

ModelFolderWriter::~ModelFolderWriter() {
  shard_.reset();
  std::error_code ignored;  // a leftover is no reason to end the program
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void ModelFolderWriter::divide(std::vector<TensorDeclaration> tensors, Bytes shard_size) {
  for (TensorDeclaration& tensor : tensors) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.size().value);
    if (shards_.empty() || shards_.back().bytes + bytes > static_cast<std::uint64_t>(shard_size.value)) {
      shards_.emplace_back();
    }
    shards_.back().tensors.push_back(std::move(tensor));
    shards_.back().bytes += bytes;
    total_ += bytes;
  }
}

std::string ModelFolderWriter::shard_name(std::size_t index) const {
  if (shards_.size() == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, shards_.size());
}

void ModelFolderWriter::write_file(const std::string& name, std::string_view content) {
  write_file_atomically(temporary_ / name, content);
}

void ModelFolderWriter::copy_file(const fs::path& file) {
  std::error_code failure;
  fs::copy_file(file, temporary_ / file.filename(), failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot copy {}", file.native()));
  fs::permissions(temporary_ / file.filename(), fs::perms::owner_write, fs::perm_options::add, failure);
}

void ModelFolderWriter::begin_shard() {
  shard_ = std::make_unique<SafetensorsWriter>(temporary_ / shard_name(begun_), shards_[begun_].tensors);
  left_in_shard_ = shards_[begun_].bytes;
  ++begun_;
}

void ModelFolderWriter::end_shard() {
  YOKE_CHECK_EQ(left_in_shard_, 0U);
  shard_->finish();
  shard_.reset();
}

void ModelFolderWriter::append(std::span<const std::byte> data) {
  throw_if_interrupted();
  if (data.empty()) return;
  while (shard_ == nullptr || left_in_shard_ == 0) {
    if (shard_ != nullptr) end_shard();
    YOKE_CHECK(begun_ < shards_.size(), "{} bytes after all {}", data.size(), total_);
    begin_shard();
  }
  YOKE_CHECK(data.size() <= left_in_shard_, "{} bytes where the shard takes {}", data.size(), left_in_shard_);
  shard_->append(data);
  left_in_shard_ -= data.size();
  appended_ += data.size();
  const Seconds elapsed = to_seconds(real_clock().now() - start_);
  const Bytes done{static_cast<std::int64_t>(appended_)};
  if (elapsed.value < 1) return;
  progress_->update(done.value,
                    fmt::format("{} of {}, {}", to_string(done), to_string(Bytes{static_cast<std::int64_t>(total_)}),
                                to_string(done / elapsed)));
}

void ModelFolderWriter::write_index() {
  Document map = Document::map();
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    for (const TensorDeclaration& tensor : shards_[i].tensors) map.add(tensor.name, Document::string(shard_name(i)));
  }
  Document metadata = Document::map();
  metadata.add("total_size", Document::number(static_cast<std::int64_t>(total_)));
  Document index = Document::map();
  index.add("metadata", std::move(metadata));
  index.add("weight_map", std::move(map));
  write_file("model.safetensors.index.json", print_json(index) + "\n");
}

WrittenModel ModelFolderWriter::finish() {
  if (shard_ != nullptr) end_shard();
  YOKE_CHECK(appended_ == total_, "{} of {} bytes", appended_, total_);
  while (begun_ < shards_.size()) {  // of tensors without elements
    begin_shard();
    end_shard();
  }
  if (shards_.size() > 1) write_index();
  throw_if_interrupted();
  // mkdtemp makes a private folder; a model is as readable as the user's other folders.
  const mode_t mask = umask(0);
  umask(mask);
  if (chmod(temporary_.c_str(), 0777 & ~mask) != 0 || rename(temporary_.c_str(), folder_.c_str()) != 0) {
    throw system_error(errno, fmt::format("cannot make {}", folder_.native()));
  }
  temporary_.clear();
  return {{static_cast<std::int64_t>(total_)}, shards_.size(), to_seconds(real_clock().now() - start_)};
}

}  // namespace yoke::weights
