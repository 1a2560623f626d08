#include "yoke/fleet/sudo.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"

namespace yoke::fleet {
namespace {

// A node whose sudo knows one password, or lets everybody, or nobody. Keeps what was run there.
class SudoNode final : public remote::RemoteShell {
 public:
  enum class Sudo { kFree, kAsks, kMissing };
  explicit SudoNode(Sudo sudo) : sudo_(sudo) {}

  const remote::Host& host() const override { return host_; }
  Outcome run(const Command& command) override {
    if (command.argv.front() == "id") return {.exit_status = 0, .out = "alice\n"};
    if (sudo_ == Sudo::kMissing) throw Error(ErrorCode::kNotFound, "the program 'sudo' was not found");
    lines_.push_back(to_string(command));
    const bool asks = command.argv.at(1) != "-n";
    if (sudo_ == Sudo::kFree || (asks && command.input == "open sesame\n")) return {.exit_status = 0};
    return {.exit_status = 1, .err = asks ? "sudo: 1 incorrect password attempt\n" : "sudo: a password is required\n"};
  }
  std::unique_ptr<remote::RemoteProcess> start(const Command&) override { return nullptr; }

  std::vector<std::string> lines_;

 private:
  Sudo sudo_;
  remote::Host host_{.name = "spark-2", .address = "10.0.0.2"};
};

const std::vector<std::string> kAgent = {"/home/alice/yoke", "agent"};

Error refusal_of(SudoNode& node, SudoPassword* password) {
  try {
    start_as_root(node, kAgent, password);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "root was had");
}

TEST(Sudo, ThatDoesNotAskIsNotAsked) {
  SudoNode node(SudoNode::Sudo::kFree);
  SudoPassword password([](const std::string&) -> std::string { throw Error(ErrorCode::kInternal, "asked"); });
  const RootStart start = start_as_root(node, kAgent, &password);
  EXPECT_EQ(start.argv, (std::vector<std::string>{"sudo", "-n", "/home/alice/yoke", "agent"}));
  EXPECT_EQ(start.input, "");
  EXPECT_FALSE(password.given());
}

TEST(Sudo, ThatAsksGetsThePasswordByItsInputAndThePersonIsAskedOnce) {
  int asked = 0;
  SudoPassword password([&](const std::string& who) {
    EXPECT_EQ(who, "spark-2");
    ++asked;
    return "open sesame";
  });
  for (int i = 0; i < 2; ++i) {
    SudoNode node(SudoNode::Sudo::kAsks);
    const RootStart start = start_as_root(node, kAgent, &password);
    EXPECT_EQ(start.argv, (std::vector<std::string>{"sudo", "-k", "-S", "-p", "", "/home/alice/yoke", "agent"}));
    EXPECT_EQ(start.input, "open sesame\n");
    for (const std::string& line : node.lines_) EXPECT_EQ(line.find("sesame"), std::string::npos) << line;
  }
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(password.given());
}

TEST(Sudo, ThatRefusesIsReportedWithTheWaysToBeLet) {
  SudoNode node(SudoNode::Sudo::kAsks);
  const Error asks = refusal_of(node, nullptr);
  EXPECT_EQ(asks.code(), ErrorCode::kPermission);
  EXPECT_EQ(asks.message(), "spark-2: this needs root, and for alice sudo prints: a password is required");
  const std::string line =
      "alice ALL=(root) NOPASSWD: sha256:" + sha256_file_hex("/proc/self/exe") + " /home/alice/yoke agent";
  EXPECT_NE(asks.hint().find(line), std::string::npos) << asks.hint();
  SudoPassword wrong([](const std::string&) { return "abracadabra"; });
  const Error refused = refusal_of(node, &wrong);
  EXPECT_NE(refused.message().find("1 incorrect password attempt"), std::string::npos) << refused.message();
  EXPECT_EQ((refused.message() + refused.hint()).find("abracadabra"), std::string::npos);
  SudoNode bare(SudoNode::Sudo::kMissing);
  EXPECT_EQ(refusal_of(bare, nullptr).message(), "spark-2: this needs root, and there is no sudo");
}

TEST(Sudo, SpecialLettersOfAPathAreEscapedInSudoers) {
  EXPECT_EQ(sudoers_line("bob", "ab", {"/a=b/c,d:e f/yoke", "agent"}),
            "bob ALL=(root) NOPASSWD: sha256:ab /a\\=b/c\\,d\\:e\\ f/yoke agent");
  // A node says who we are there: no rule for somebody else comes of it.
  for (const char* name : {"%sudo", "ALL", "bob ALL=(ALL) NOPASSWD: ALL\nbob", "-bob", ""}) {
    EXPECT_TRUE(sudoers_line(name, "ab", {"/yoke"}).starts_with("YOUR-USER ALL=(root)")) << name;
  }
}

}  // namespace
}  // namespace yoke::fleet
