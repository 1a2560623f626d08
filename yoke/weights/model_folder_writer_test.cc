#include "yoke/weights/model_folder_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/weights/model_files.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;

struct ModelFolderWriting : testing::Test {
  ScratchDir scratch;
  const fs::path folder = scratch.path() / "made";
  // Two tensors of 600 kB and one of 1.2 MB: with shards of 1 MB that makes three files.
  const std::vector<TensorDeclaration> tensors = {{"a", tensor::DType::kU8, {600'000}},
                                                  {"b", tensor::DType::kU8, {600'000}},
                                                  {"c", tensor::DType::kI32, {300, 1000}}};

  static std::vector<std::byte> content(std::size_t size, int value) { return {size, static_cast<std::byte>(value)}; }
  void append_all(ModelFolderWriter& writer) const {
    int value = 0;
    for (const TensorDeclaration& tensor : tensors) {
      writer.append(content(static_cast<std::size_t>(tensor.shape.count()) * tensor::size_of(tensor.type), ++value));
    }
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator{}));
  }
  static void begin(const fs::path& place, std::vector<TensorDeclaration> declared,
                    const ModelFolderOptions& options = {}) {
    const ModelFolderWriter writer(place, std::move(declared), options);
  }
};

TEST_F(ModelFolderWriting, OneFileWhereItFits) {
  ModelFolderWriter writer(folder / "", tensors, {});  // with a slash at the end, as shells complete it
  writer.write_file("config.json", "{}");
  append_all(writer);
  EXPECT_FALSE(fs::exists(folder)) << "it appears when it is whole";
  const WrittenModel written = writer.finish();
  EXPECT_EQ(written.bytes.value, 2'400'000);
  EXPECT_EQ(written.shards, 1U);
  EXPECT_TRUE(fs::exists(folder / "model.safetensors"));
  EXPECT_FALSE(fs::exists(folder / "model.safetensors.index.json"));
  EXPECT_EQ(entries(), 1U);
  struct stat status {};
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_TRUE((status.st_mode & S_IRWXU) == S_IRWXU);
}

TEST_F(ModelFolderWriting, ShardsAndTheirIndexAreReadBack) {
  ModelFolderWriter writer(folder, tensors, {.shard_size = kMinShardSize});
  writer.write_file("config.json", "{}");
  append_all(writer);
  EXPECT_EQ(writer.finish().shards, 3U);
  const ModelFiles files(folder);
  EXPECT_EQ(files.file_of("c").filename(), "model-00003-of-00003.safetensors");
  for (int i = 0; i < 3; ++i) {
    const tensor::Tensor view = files.view(tensors[static_cast<std::size_t>(i)].name);
    EXPECT_EQ(view.raw()[0], static_cast<std::byte>(i + 1));
    EXPECT_EQ(view.raw()[view.bytes() - 1], static_cast<std::byte>(i + 1));
  }
  const Document index = parse_json(read_file(folder / "model.safetensors.index.json"), "index");
  EXPECT_EQ(index.find("metadata")->find("total_size")->text, "2400000");
}

TEST_F(ModelFolderWriting, NothingIsLeftOfOneThatWasNotFinished) {
  {
    ModelFolderWriter writer(folder, tensors, {.shard_size = kMinShardSize});
    writer.write_file("config.json", "{}");
    writer.append(content(600'000, 1));
    writer.append(content(300'000, 2));
    EXPECT_EQ(entries(), 1U);
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(ModelFolderWriting, AnEmptyFolderIsTakenAndAFullOneIsNot) {
  fs::create_directory(folder);
  fs::create_directory_symlink(folder, scratch.path() / "link");
  ModelFolderWriter writer(scratch.path() / "link", tensors, {});
  append_all(writer);
  writer.finish();
  EXPECT_TRUE(fs::exists(folder / "model.safetensors"));
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
  EXPECT_ERROR(begin(folder, tensors), ErrorCode::kConflict, "is there already, and is not empty");
  EXPECT_ERROR(begin(folder / "model.safetensors", tensors), ErrorCode::kConflict,
               "is there already, and is no folder");
}

TEST_F(ModelFolderWriting, WhatCannotBeIsReportedBeforeAnythingIsWritten) {
  EXPECT_ERROR(begin(folder / "deeper", tensors), ErrorCode::kNotFound, "there is no folder");
  EXPECT_ERROR(begin(folder, tensors, {.shard_size = Bytes{999}}), ErrorCode::kUsage, "a shard of 999 B is too small");
  EXPECT_ERROR(begin(folder, {{"a", tensor::DType::kU8, {1 << 20, 1 << 30}}}), ErrorCode::kExhausted,
               "needs 1.00 PiB, but its disk has");
  EXPECT_ERROR(begin(folder, tensors, {.other_files = Bytes{std::int64_t{1} << 60}}), ErrorCode::kExhausted,
               "but its disk has");
  EXPECT_EQ(entries(), 0U);
}

}  // namespace
}  // namespace yoke::weights
