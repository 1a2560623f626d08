#include "yoke/weights/model_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke::weights {
namespace {

namespace fs = std::filesystem;

// A working folder of its own, with a model in it.
struct ModelFolder : testing::Test {
  ModelFolder() {
    fs::current_path(scratch.path());
    make_folder("mine");
    write_file_atomically("mine/config.json", "{}");
    make_folder("empty");
    write_file_atomically("weights.gguf", "GGUF");
    setenv("HF_HUB_CACHE", (scratch.path() / "hub").c_str(), 1);
  }
  ~ModelFolder() override {
    fs::current_path(before);
    unsetenv("HF_HUB_CACHE");
  }
  const fs::path before = fs::current_path();
  const ScratchDir scratch{"yoke-model"};
};

TEST_F(ModelFolder, IsFoundByItsPath) { EXPECT_EQ(find_model_folder("mine"), scratch.path() / "mine"); }

TEST_F(ModelFolder, ThatIsMissingIsNamedAsItWasTyped) {
  EXPECT_ERROR(find_model_folder("./nosuch/dir"), ErrorCode::kNotFound, "there is no model folder './nosuch/dir'");
  EXPECT_ERROR(find_model_folder("empty"), ErrorCode::kNotFound, "'empty' is no model folder: it has no config.json");
  EXPECT_ERROR(find_model_folder("weights.gguf"), ErrorCode::kUnsupported, "'weights.gguf' is a GGUF file",
               "'yoke model import weights.gguf weights'");
  EXPECT_ERROR(find_model_folder("other.gguf"), ErrorCode::kUnsupported, "'other.gguf' is a GGUF file");
}

TEST_F(ModelFolder, OfAHuggingFaceIdIsLookedForInItsCache) {
  EXPECT_ERROR(find_model_folder("meta-llama/Llama-3.2-1B"), ErrorCode::kNotFound, "nor in Hugging Face's cache",
               "'yoke prep model meta-llama/Llama-3.2-1B Llama-3.2-1B'");
  const fs::path model = scratch.path() / "hub/models--meta-llama--Llama-3.2-1B";
  make_folder(model / "refs");
  make_folder(model / "snapshots/abc123");
  write_file_atomically(model / "refs/main", "abc123");
  write_file_atomically(model / "snapshots/abc123/config.json", "{}");
  EXPECT_EQ(find_model_folder("meta-llama/Llama-3.2-1B"), model / "snapshots/abc123");
  write_file_atomically(model / "refs/main", "../../../mine");
  EXPECT_FALSE(find_in_hub_cache("meta-llama/Llama-3.2-1B")) << "a revision is a name, not a path";
}

TEST_F(ModelFolder, WithANameIsFoundBesideTheWorkingFolder) {
  make_folder("models/nano");
  write_file_atomically("models/nano/config.json", "{}");
  EXPECT_EQ(find_model_folder("nano"), scratch.path() / "models/nano");
  EXPECT_EQ(find_model_folder(""), scratch.path() / "models/nano");
  EXPECT_ERROR(find_model_folder("namo"), ErrorCode::kNotFound, "there is no model folder 'namo'",
               "did you mean 'nano'?");
}

TEST(ModelFolderArguments, CarryTheFolderInThePlaceOfTheWord) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(with_model_folder({"run", "nano", "-p", "hi"}, "nano", "/m/nano"), (Words{"run", "/m/nano", "-p", "hi"}));
  EXPECT_EQ(with_model_folder({"run", "-p", "hi"}, "", "/m/nano"), (Words{"run", "-p", "hi", "/m/nano"}));
}

TEST(FindGpu, NeedsADisplayControllerOfNvidia) {
  MemoryTree machine;
  machine.add_file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  machine.add_file("/sys/bus/pci/devices/0000:01:00.0/class", "0x060400\n");
  EXPECT_FALSE(find_gpu(machine)) << "a bridge";
  machine.add_file("/sys/bus/pci/devices/000f:01:00.0/vendor", "0x10de\n");
  machine.add_file("/sys/bus/pci/devices/000f:01:00.0/class", "0x030200\n");
  EXPECT_EQ(find_gpu(machine), "NVIDIA GPU at 000f:01:00.0");
}

}  // namespace
}  // namespace yoke::weights
