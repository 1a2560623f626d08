// Nodes with the program's own agent: this machine's as a child process, and behind an ssh server of our own.
#include "yoke/fleet/node.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/fleet/connection.h"
#include "yoke/fleet/fleet.h"
#include "yoke/remote/local_shell.h"
#include "yoke/remote/sshd_testing.h"
#include "yoke/spec/machine.h"

namespace yoke::fleet {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

std::shared_ptr<const remote::ProgramFile> the_program() { return std::make_shared<remote::ProgramFile>(YOKE_PROGRAM); }

const spec::ClusterNode kHere{.name = "spark-1", .address = "127.0.0.1"};

TEST(Node, OfThisMachineIsAskedWithoutSsh) {
  Node node(kHere, 0, {.ssh = {.program = "/no/ssh"}, .program = the_program()});
  EXPECT_TRUE(node.is_here());
  const spec::Machine machine = from_json<spec::Machine>(node.ask("probe", Document::null(), 60_s));
  EXPECT_EQ(machine.hostname, node.look().hostname);
  EXPECT_EQ(node.clock_ahead().value, 0);
}

TEST(Node, ErrorsOfTheFarSideNameIt) {
  Node node(kHere, 0, {.program = the_program()});
  const auto answer = try_to([&] { return node.ask("dance", Document::null(), 60_s); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message(), "'dance' is no action of an agent");
  EXPECT_EQ(answer.error().context(), std::vector<std::string>{"on spark-1"});
}

// An agent's place taken by a script.
class Impostor : public ::testing::Test {
 protected:
  static Error error_of(const std::string& script) {
    remote::LocalShell shell({.name = "spark-2"});
    Connection connection(shell.start({.argv = {"sh", "-c", script}, .input_mode = InputMode::kPipe}), "spark-2");
    const auto hello = try_to([&] { connection.await_hello(Deadline::after(30_s)); });
    if (!hello) return hello.error();
    ADD_FAILURE() << "no error";
    return {ErrorCode::kInternal, ""};
  }
};

TEST_F(Impostor, ThatPrintsSomethingElseIsDistinguishedFromAnAgent) {
  const Error error = error_of("echo Welcome to spark-2; cat");
  EXPECT_EQ(error.code(), ErrorCode::kInvalid);
  EXPECT_EQ(error.message(),
            R"(the channel to spark-2 carries nonsense: what came is no message of yoke's: 'Welcome to spark-2\x0a')");
}

TEST_F(Impostor, ThatEndsIsReportedWithItsLastWords) {
  const Error error = error_of("echo no memory >&2; exit 1");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "yoke's agent on spark-2 ended: no memory");
}

TEST_F(Impostor, ThatSendsAHeartbeatWithoutATimeIsAnError) {
  const Error error = error_of(R"(printf 'YKA\001\002\000\000\000\001\000\000\000\000{}'; cat)");
  EXPECT_EQ(error.code(), ErrorCode::kInvalid);
  EXPECT_EQ(error.message(), "the channel to spark-2 carries nonsense: heartbeat lacks 'time'");
}

// The node behind an ssh server, with a client that counts how often it is started.
class FarNode : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = remote::TestSshd::missing(); !why.empty()) GTEST_SKIP() << why;
    sshd_ = std::make_unique<remote::TestSshd>();
    write_file_atomically(client(), fmt::format("#!/bin/sh\necho x >> '{}'\nexec ssh \"$@\"\n", count().native()),
                          {.mode = 0755});
  }
  void TearDown() override {
    if (sshd_) remote::SshShell(sshd_->host(), options().ssh).disconnect();
  }

  fs::path client() const { return sshd_->path("client"); }
  fs::path count() const { return sshd_->path("count"); }
  NodeOptions options() const {
    NodeOptions options{.ssh = sshd_->options(), .program = the_program()};
    options.ssh.program = client();
    options.ssh.login_timeout = 60_s;
    return options;
  }
  spec::ClusterNode place() const {
    const remote::Host host = sshd_->host();
    return {.name = "spark-2", .address = host.address, .user = host.user, .port = host.port};
  }
  long executions() {
    const std::string text = read_file(count());
    fs::remove(count());
    return std::count(text.begin(), text.end(), 'x');
  }

  std::unique_ptr<remote::TestSshd> sshd_;
};

TEST_F(FarNode, IsReachedByOneExecutionOfSshOnceTheProgramIsThere) {
  {
    Node node(place(), 1, options());
    EXPECT_FALSE(node.is_here());
    node.ask("probe", Document::null(), 60_s);
    EXPECT_TRUE(fs::exists(node.program()));
    EXPECT_NE(node.program().find(sshd_->home()), std::string::npos);
  }
  EXPECT_EQ(executions(), 3) << "look, copy, agent";
  {
    Node node(place(), 1, options());
    for (int i = 0; i < 3; ++i) node.ask("probe", Document::null(), 60_s);
    EXPECT_TRUE(node.logged_in());
    EXPECT_LT(std::abs(node.clock_ahead().value), 30);
  }
  EXPECT_EQ(executions(), 1) << "look and agent, and none to end it";
  {
    NodeOptions fresh = options();
    fresh.ssh.fresh_login = true;
    Node node(place(), 1, fresh);
    node.reach();
  }
  EXPECT_EQ(executions(), 1) << "a fresh login needs none to leave the old one";
}

TEST_F(FarNode, ALookOnlyFindsOutWhoWeAreThere) {
  Node node(place(), 1, options());
  const remote::NodeLook& look = node.look();
  EXPECT_EQ(look.machine, remote::program_machine(YOKE_PROGRAM));
  EXPECT_EQ(look.user, sshd_->host().user);
  EXPECT_EQ(look.is_root, geteuid() == 0);
  EXPECT_EQ(look.reached_at, "127.0.0.1");
  EXPECT_FALSE(look.whole);
  EXPECT_FALSE(fs::exists(look.path)) << "nothing was copied";
  EXPECT_EQ(executions(), 1);
}

TEST_F(FarNode, ThatDoesNotLetUsInIsDistinguishedFromOneThatFailsLater) {
  sshd_->know_host("other_key.pub");
  Node node(place(), 1, options());
  const auto reached = try_to([&] { node.reach(); });
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().code(), ErrorCode::kPermission);
  EXPECT_FALSE(node.logged_in());
}

TEST_F(FarNode, AsksAllNodesAtOnce) {
  Fleet fleet({kHere, place()}, options());
  const auto machines =
      fleet.each("", [](Node& node) { return from_json<spec::Machine>(node.ask("probe", Document::null(), 60_s)); });
  ASSERT_EQ(machines.size(), 2U);
  ASSERT_TRUE(machines[0]);
  ASSERT_TRUE(machines[1]);
  EXPECT_EQ(machines[0]->hostname, machines[1]->hostname) << "both are this machine";
}

}  // namespace
}  // namespace yoke::fleet
