// The official clients of OpenAI's and Anthropic's APIs, and a real browser, against yoke serve. They come from npm by
// scripts/install-clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/served.h"
#include "tests/served_tools.h"

namespace yoke::tests {
namespace {

using namespace literals;

const std::filesystem::path kClientFolder = kSourceFolder / "build/clients";
const std::filesystem::path kClientScripts = kSourceFolder / "tests/clients";

bool has_clients() {
  return find_program("node") && std::filesystem::exists(kClientFolder / "node_modules/openai") &&
         std::filesystem::exists(kClientFolder / "node_modules/playwright-core");
}

struct ServeClients : testing::Test {
  static void SetUpTestSuite() {
    if (!has_clients()) return;
    folder = std::make_unique<ScratchDir>("yoke-serve-clients");
    const auto model = model_with_template(folder->path() / "nano", kHermesTemplate);
    served = std::make_unique<Served>(ServedHow{.model = {model.native(), "--threads", "1"}});
    served->wait_until_ready();
  }
  static void TearDownTestSuite() {
    served.reset();
    folder.reset();
  }
  Outcome script(const char* name, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {"node", (kClientScripts / name).native(),
                                     fmt::format("http://127.0.0.1:{}", served->port)};
    argv.insert(argv.end(), more.begin(), more.end());
    return run({.argv = argv, .environment = {{"HOME", folder->path()}}, .folder = kClientFolder, .timeout = 90_s});
  }
  static std::unique_ptr<ScratchDir> folder;
  static std::unique_ptr<Served> served;
};
std::unique_ptr<ScratchDir> ServeClients::folder;
std::unique_ptr<Served> ServeClients::served;

TEST_F(ServeClients, OfOpenAiAndAnthropicWork) {
  if (!has_clients()) GTEST_SKIP() << "the npm packages are not there: scripts/install-clients";
  const Outcome outcome = script("apis.mjs");
  EXPECT_TRUE(outcome.ok()) << outcome.out << outcome.err;
}

TEST_F(ServeClients, AreChromiumToo) {
  if (!has_clients()) GTEST_SKIP() << "the npm packages are not there: scripts/install-clients";
  if (!find_program("chromium")) GTEST_SKIP() << "chromium is not installed";
  const Outcome outcome = script("page.mjs", {folder->path().native()});
  EXPECT_TRUE(outcome.ok()) << outcome.out << outcome.err;
  for (const char* name : {"chat", "cluster", "dark", "phone"}) {
    EXPECT_GT(std::filesystem::file_size(folder->path() / (std::string(name) + ".png")), 5000U) << name;
  }
}

}  // namespace
}  // namespace yoke::tests
