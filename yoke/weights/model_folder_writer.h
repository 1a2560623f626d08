// Writes a model folder: weights in one safetensors file or in shards with their index, and the small files beside
// them. In memory that does not depend on the model's size.
//
//   ModelFolderWriter writer("/models/made", tensors, {.shard_size = parse_bytes("5GB").value()});
//   writer.write_file("config.json", config);
//   writer.append(bytes);        // of the tensors, in the order declared, in pieces that end with a tensor or before
//   writer.finish();
//
// The folder appears whole with finish() or not at all: it grows under a temporary name beside its place
// (".made.XXXXXX"), which goes when the writer goes, also after Ctrl-C, for which append() looks. A disk that is too
// small is reported before anything is written. Shows progress. One thread at a time.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/progress.h"
#include "yoke/base/units.h"
#include "yoke/weights/writer.h"

namespace yoke::weights {

inline constexpr Bytes kShardSizeUsual{5'000'000'000};  // what transformers writes
inline constexpr Bytes kMinShardSize{1'000'000};

struct ModelFolderOptions {
  Bytes shard_size = kShardSizeUsual;  // a tensor that is larger gets a shard of its own
  Bytes other_files{0};                // what write_file() and copy_file() will need, for the look at the disk
};

struct WrittenModel {
  Bytes bytes{0};  // of the tensors
  std::size_t shards = 0;
  Seconds time{0};
};

class ModelFolderWriter {
 public:
  // kConflict where the folder exists and is not empty, kNotFound where its parent is not there, kExhausted where the
  // disk has no room, kUsage for a shard size below the least.
  ModelFolderWriter(const std::filesystem::path& folder, std::vector<TensorDeclaration> tensors,
                    const ModelFolderOptions& options);
  ~ModelFolderWriter();
  ModelFolderWriter(const ModelFolderWriter&) = delete;
  ModelFolderWriter& operator=(const ModelFolderWriter&) = delete;

  void write_file(const std::string& name, std::string_view content);
  void copy_file(const std::filesystem::path& file);  // beside the weights, under its own name
  void append(std::span<const std::byte> data);
  WrittenModel finish();  // all declared bytes must have come

 private:
  struct Shard {
    std::vector<TensorDeclaration> tensors;
    std::uint64_t bytes = 0;
  };
  void divide(std::vector<TensorDeclaration> tensors, Bytes shard_size);
  std::string shard_name(std::size_t index) const;
  void end_shard();
  void begin_shard();
  void write_index();

  std::filesystem::path folder_;
  std::filesystem::path temporary_;  // empty once it is gone
  std::vector<Shard> shards_;
  std::uint64_t total_ = 0;
  std::uint64_t appended_ = 0;
  std::uint64_t left_in_shard_ = 0;
  std::size_t begun_ = 0;  // shards
  std::unique_ptr<SafetensorsWriter> shard_;
  Instant start_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace yoke::weights
