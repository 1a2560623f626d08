#include "yoke/weights/model_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/weights/model_testing.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The message and hint with which opening or loading fails.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message() + " | " + error.hint();
  }
  return "";
}

void write_shards(const fs::path& folder, const std::string& index) {
  write_file_atomically(folder / "config.json", "{}");
  write_file_atomically(folder / "model.safetensors.index.json", index);
  write_tensors(folder / "model-1.safetensors", {stored_f32("a", {2, 3})});
  write_tensors(folder / "model-2.safetensors", {stored_f32("b", {4}), stored_f32("c", {1})});
}

TEST(ModelFiles, ReadsASingleFile) {
  const ScratchDir scratch;
  write_model(scratch.path(), R"({"model_type":"llama"})", {stored_f32("a", {4, 3}), stored_f32("b", {5})});
  const ModelFiles files(scratch.path());
  EXPECT_THAT(files.tensor_names(), testing::ElementsAre("a", "b"));
  EXPECT_EQ(files.config().find("model_type")->text, "llama");
  EXPECT_EQ(files.bytes().value, 17 * 4);
  EXPECT_EQ(files.load_tensor("a", tensor::Slice::rows({1, 3})).row<float>(1)[2], 8.0F);
  EXPECT_EQ(files.load_tensor("a", tensor::Slice::columns({1, 2})).row<float>(3)[0], 10.0F);
  EXPECT_EQ(files.load_tensor("b", tensor::Slice::rows({2, 5})).data<float>()[0], 2.0F);
  EXPECT_THAT(refusal([&] { files.load_tensor("b", tensor::Slice::columns({0, 1})); }), HasSubstr("no such axis"));
  EXPECT_THAT(refusal([&] { files.load_tensor("a", tensor::Slice::rows({3, 5})); }), HasSubstr("not within the 4"));
  EXPECT_THAT(refusal([&] { files.load_tensor("bb"); }), HasSubstr("there is one named 'b'"));
}

TEST(ModelFiles, AWholeFileCountsBeforeAnIndexThatWasLeftBehind) {
  const ScratchDir scratch;
  write_model(scratch.path(), "{}", {stored_f32("a", {4, 3})});
  write_file_atomically(scratch.path() / "model.safetensors.index.json", R"({"weight_map":{"a":"gone.safetensors"}})");
  EXPECT_THAT(ModelFiles(scratch.path()).tensor_names(), testing::ElementsAre("a"));
}

TEST(ModelFiles, FingerprintsOfTheSameModelAreEqualAndOthersAreNot) {
  const auto fingerprint = [](const std::string& config, const StoredTensor& a, const StoredTensor& b) {
    const ScratchDir scratch;
    write_model(scratch.path(), config, {a, b});
    return ModelFiles(scratch.path()).fingerprint();
  };
  const StoredTensor a = stored_f32("a", {400, 3});
  const StoredTensor b = stored_f32("b", {5});
  const std::string one = fingerprint("{}", a, b);
  EXPECT_EQ(fingerprint(" { } ", a, b), one) << "copied by whatever tool";
  EXPECT_NE(fingerprint(R"({"rope_theta": 10000})", a, b), one);
  EXPECT_NE(fingerprint("{}", stored_f32("a", {3, 400}), b), one);
  EXPECT_NE(fingerprint("{}", a, stored_f32("c", {5})), one);
  StoredTensor other = a;
  for (std::byte& byte : other.bytes) byte ^= std::byte{1};
  EXPECT_NE(fingerprint("{}", other, b), one) << "of the same shape";
  StoredTensor other_small = b;
  other_small.bytes[8] ^= std::byte{1};
  EXPECT_NE(fingerprint("{}", a, other_small), one);
}

TEST(ModelFiles, ViewsOutliveTheFolder) {
  const ScratchDir scratch;
  write_model(scratch.path(), "{}", {stored_f32("a", {3})});
  const tensor::Tensor tensor = ModelFiles(scratch.path()).view("a");
  EXPECT_EQ(tensor.data<float>()[2], 2.0F);
}

TEST(ModelFiles, MisalignedTensorsAreLoadedAligned) {
  const ScratchDir scratch;
  write_model(scratch.path(), "{}",
              {stored<std::uint8_t>("odd", tensor::DType::kU8, {3}, {1, 2, 3}), stored_f32("a", {2, 3})});
  const ModelFiles files(scratch.path());
  EXPECT_FALSE(files.view("a").is_aligned());
  EXPECT_EQ(files.load_tensor("a", tensor::Slice::columns({2, 3})).row<float>(1)[0], 5.0F);
}

TEST(ModelFiles, ReadsShardsByTheirIndex) {
  const ScratchDir scratch;
  write_shards(scratch.path(), R"({"metadata":{"total_size":44},
      "weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-2.safetensors"}})");
  const ModelFiles files(scratch.path());
  EXPECT_THAT(files.tensor_names(), testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(files.load_tensor("b").data<float>()[3], 3.0F);
  EXPECT_EQ(files.file_of("c").filename(), "model-2.safetensors");
}

TEST(ModelFiles, AnIndexThatLiesIsReported) {
  const std::pair<const char*, const char*> lies[] = {
      {R"({"weight_map":{"a":"model-3.safetensors"}})", "names the shard model-3.safetensors, which is not there"},
      {R"({"weight_map":{"a":"model-2.safetensors","b":"model-1.safetensors"}})", "it is in model-1.safetensors"},
      {R"({"weight_map":{"x":"model-1.safetensors"}})", "the tensor 'x' is not in"},
      {R"({"weight_map":{"a":"../model-1.safetensors"}})", "a file beside the index"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "a file beside the index"},
      {R"({"weight_map":{"a":".."}})", "a file beside the index"},
      {R"({"weight_map":{"a":1}})", "must be a text"},
      {R"({"weight_map":{}})", "has no weight_map"},
      {R"([])", "has no weight_map"},
      {R"({"weight_map":)", "is not JSON"},
  };
  for (const auto& [index, reported] : lies) {
    const ScratchDir scratch;
    write_shards(scratch.path(), index);
    EXPECT_THAT(refusal([&] { ModelFiles files(scratch.path()); }), HasSubstr(reported)) << index;
  }
}

TEST(ModelFiles, WhatIsNoModelFolderIsReported) {
  const ScratchDir scratch;
  const auto open = [&] { ModelFiles files(scratch.path()); };
  EXPECT_THAT(refusal([&] { ModelFiles files(scratch.path() / "none"); }), HasSubstr("there is no model folder"));
  EXPECT_THAT(refusal(open), HasSubstr("holds no config.json"));
  write_file_atomically(scratch.path() / "config.json", "[]");
  EXPECT_THAT(refusal(open), HasSubstr("must be a JSON object"));
  write_file_atomically(scratch.path() / "config.json", "{}");
  EXPECT_THAT(refusal(open), HasSubstr("neither model.safetensors nor"));
  write_file_atomically(scratch.path() / "pytorch_model.bin", "x");
  EXPECT_THAT(refusal(open), HasSubstr("pytorch_model.bin is another format"));
  write_file_atomically(scratch.path() / "model.safetensors", "");
  EXPECT_THAT(refusal(open), HasSubstr("too short"));
  fs::remove(scratch.path() / "model.safetensors");
  ASSERT_EQ(mkfifo((scratch.path() / "model.safetensors").c_str(), 0600), 0);
  EXPECT_THAT(refusal(open), HasSubstr("not a regular file"));
}

TEST(ModelFiles, ATruncatedFileIsReported) {
  const ScratchDir scratch;
  write_model(scratch.path(), "{}", {stored_f32("a", {100})});
  fs::resize_file(scratch.path() / "model.safetensors", fs::file_size(scratch.path() / "model.safetensors") - 1);
  EXPECT_THAT(refusal([&] { ModelFiles files(scratch.path()); }), HasSubstr("'a' claims bytes 0 to 400 of the 399"));
}

TEST(ModelFiles, AFileThatChangesDuringTheLoadIsReported) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "model.safetensors";
  write_model(scratch.path(), "{}", {stored_f32("a", {5000})});
  const ModelFiles files(scratch.path());
  files.check_unchanged();
  fs::resize_file(file, 100);
  EXPECT_THAT(refusal([&] { files.load_tensor("a"); }), HasSubstr("was changed while it was being loaded"));
  EXPECT_THAT(refusal([&] { files.check_unchanged(); }), HasSubstr("was changed"));
}

TEST(ModelFiles, AFileThatIsReplacedStaysReadableAsItWas) {
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "model.safetensors";
  write_model(scratch.path(), "{}", {stored_f32("a", {5000})});
  const ModelFiles files(scratch.path());
  write_file_atomically(file, "another");
  EXPECT_EQ(files.load_tensor("a").data<float>()[4999], 4999.0F);
  files.check_unchanged();
}

TEST(ModelFilesDeathTest, AFileCutWhileItIsReadEndsTheProcessWithASentence) {
  GTEST_FLAG_SET(death_test_style, "fast");  // a child that begins again would leave a folder of its own behind
  const ScratchDir scratch;
  const fs::path file = scratch.path() / "model.safetensors";
  write_model(scratch.path(), "{}", {stored_f32("a", {50000})});
  const auto read_a_cut_file = [&] {
    const tensor::Tensor tensor = ModelFiles(scratch.path()).view("a");
    fs::resize_file(file, 100);
    std::_Exit(tensor.data<float>()[49999] == 0 ? 100 : 101);
  };
  EXPECT_EXIT(read_a_cut_file(), testing::ExitedWithCode(info(ErrorCode::kConflict).exit_status),
              "model.safetensors was cut short");
}

std::size_t resident_bytes(const tensor::Tensor& tensor) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(tensor.raw()) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(tensor.raw()) + tensor.bytes();
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  if (mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) != 0) return 0;
  std::size_t resident = 0;
  for (const unsigned char state : pages) resident += (state & 1U) * page;
  return resident;
}

TEST(ModelFiles, DroppedViewsLeaveMemoryAndAreReadAgainFromTheDisk) {
  const ScratchDir scratch;
  struct statfs file_system {};
  ASSERT_EQ(statfs(scratch.path().c_str(), &file_system), 0);
  if (file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC) {
    GTEST_SKIP() << "this file system keeps its pages in memory";
  }
  write_model(scratch.path(), "{}", {stored_f32("a", {1 << 20})});
  sync();  // dirty pages cannot be dropped
  const ModelFiles files(scratch.path());
  const tensor::Tensor tensor = files.view("a");
  float sum = 0;
  for (const float value : tensor.span<float>()) sum += value;
  EXPECT_GT(sum, 0);
  EXPECT_GE(resident_bytes(tensor), tensor.bytes());
  files.drop(tensor);
  EXPECT_LT(resident_bytes(tensor), tensor.bytes() / 8);
  EXPECT_EQ(tensor.data<float>()[12345], 12345.0F);
}

TEST(ModelFiles, ASliceOfAHugeTensorReadsOnlyItself) {
  const ScratchDir scratch;
  constexpr std::int64_t kRows = 1 << 16;
  constexpr std::int64_t kColumns = 1 << 18;  // 64 GiB of f32: a file of holes that nobody could read whole
  const std::string json = fmt::format(R"({{"m.weight":{{"dtype":"F32","shape":[{},{}],"data_offsets":[0,{}]}}}})",
                                       kRows, kColumns, kRows * kColumns * 4);
  std::string head(8, '\0');
  head[0] = static_cast<char>(json.size());
  write_file_atomically(scratch.path() / "config.json", "{}");
  write_file_atomically(scratch.path() / "model.safetensors", head + json);
  std::error_code failure;
  fs::resize_file(scratch.path() / "model.safetensors", 8 + json.size() + kRows * kColumns * 4, failure);
  if (failure) GTEST_SKIP() << "this file system holds no files of 64 GiB: " << failure.message();
  const ModelFiles files(scratch.path());
  const tensor::Matrix part = files.load_matrix("m", tensor::Slice::rows({kRows - 2, kRows}));
  EXPECT_EQ(part.copied().values.row<float>(1)[kColumns - 1], 0.0F);
  const tensor::Matrix columns = files.load_matrix("m", tensor::Slice::columns({kColumns / 2, kColumns}));
  EXPECT_EQ(columns.sliced(tensor::Slice::rows({77, 78})).copied().columns, kColumns / 2);
}

TEST(ModelFiles, WriteNothingToTheFolder) {
  const ScratchDir scratch;
  write_model(scratch.path(), "{}", {stored_f32("a", {4, 4})});
  const auto listing = [&] {
    std::vector<std::string> lines;
    for (const auto& entry : fs::directory_iterator(scratch.path())) {
      struct stat status {};
      stat(entry.path().c_str(), &status);
      lines.push_back(fmt::format("{} {} {} {}", entry.path().native(), status.st_size, status.st_mtim.tv_nsec,
                                  status.st_ctim.tv_nsec));
    }
    struct stat status {};
    stat(scratch.path().c_str(), &status);
    lines.push_back(fmt::format("{}.{}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec));
    return lines;
  };
  const auto before = listing();
  const ModelFiles files(scratch.path());
  files.drop(files.view("a"));
  files.check_unchanged();
  EXPECT_EQ(listing(), before);
}

}  // namespace
}  // namespace yoke::weights
