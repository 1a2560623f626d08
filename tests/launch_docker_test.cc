// A real Docker and a real registry on the nodes of a lab: `yoke prep image` and `yoke launch --through docker`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/lab_fixture.h"
#include "yoke/base/clock.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kImage = "10.77.0.1:5000/engine:1";
constexpr const char* kEngine = R"(name: boxed
title: yoke serve in a container
goal: serve
program: yoke
order: any
processes:
  - name: serve
    on: head
    command: [/usr/bin/yoke, serve, "{model}", --host, 127.0.0.1, --port, "{port}", --name, nano]
ports:
  - { name: port, number: 8000, on: head, use: "HTTP API" }
ready: { path: /ready, canary: completions, model: nano, start: 5min }
)";

// A Docker of its own on both nodes; the first has a registry with an image that holds this program and its libraries.
class LabDocker : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_labs({"dockerd", "docker", "docker-registry", "ldd"})) GTEST_SKIP() << *why;
    lab_.emplace(std::vector<std::string>{"--hardware", "none", "--memory", "2GiB"});
    fs::copy(kSourceFolder / "models/nano", path("nano"));
    write_file_atomically(path("boxed.yaml"), kEngine);
    on("1",
       "mkdir -p /tmp/registry && printf 'version: 0.1\\nstorage: { filesystem: { rootdirectory: /tmp/registry } }\\n"
       "http: { addr: 0.0.0.0:5000 }\\n' > /tmp/registry.yml && "
       "(setsid docker-registry serve /tmp/registry.yml > /tmp/registry.log 2>&1 &)");
    for (const char* node : {"1", "2"}) {
      on(node,
         "mkdir -p /tmp/docker && (setsid dockerd --data-root /tmp/docker/data --exec-root /tmp/docker/exec "
         "-H unix:///run/docker.sock --pidfile /tmp/docker/pid --bridge=none --iptables=false "
         "--insecure-registry 10.77.0.1:5000 > /tmp/docker/log 2>&1 &)");
    }
    for (const char* node : {"1", "2"}) {
      on(node, "timeout 30 sh -c 'until docker version > /dev/null 2>&1; do sleep 0.1; done' || cat /tmp/docker/log");
    }
    make_image();
  }
  void TearDown() override {
    if (!lab_) return;
    for (const char* node : {"1", "2"}) {
      lab_->exec(node,
                 {"sh", "-c", "kill $(cat /tmp/docker/pid); while pgrep -x dockerd >/dev/null; do sleep 0.1; done"});
    }
  }
  std::string path(const std::string& name) const { return shared_.path() / name; }
  std::string on(const std::string& node, const std::string& script) const {
    const Outcome outcome = lab_->exec(node, {"sh", "-c", script});
    EXPECT_TRUE(outcome.ok()) << script << "\n" << outcome.out << outcome.err;
    return outcome.out;
  }
  std::string containers() const { return on("1", "docker ps --format '{{.Names}} {{.ID}}'"); }

  std::optional<TestLab> lab_;
  const ScratchDir shared_{"yoke-docker-test", "/var/tmp"};  // where nodes see it

 private:
  void make_image() {
    on("1", fmt::format("root=/tmp/root && mkdir -p $root/usr/bin $root/tmp && cp {0} $root/usr/bin/yoke && "
                        "for file in $(ldd {0} | grep -o '/[^ ]*'); do cp -L --parents $file $root; done && "
                        "tar -C $root -cf - . | docker import - {1} && docker push -q {1} && docker rmi -f {1}",
                        YOKE_PROGRAM, kImage));
  }
};

TEST_F(LabDocker, AnEngineRunsInAContainerAndComesBackAfterAKill) {
  const std::vector<std::string> launch = {"launch", path("boxed.yaml"), path("nano"), "--through", "docker", "--image",
                                           kImage,   "--pause",          "1s",         "--floor",   "16MiB"};
  const Outcome missing = lab_->yoke(launch);
  EXPECT_EQ(missing.exit_status, 1) << missing.out << missing.err;
  EXPECT_THAT(missing.out, HasSubstr("launch-image-missing: node-2"));
  EXPECT_THAT(missing.out, HasSubstr(fmt::format("yoke prep image {}", kImage)));
  const Outcome pulled = lab_->yoke({"prep", "image", kImage});
  ASSERT_TRUE(pulled.ok()) << pulled.out << pulled.err;
  EXPECT_THAT(pulled.out, HasSubstr("All nodes have the same image."));

  std::vector<std::string> argv = {YOKE_PROGRAM};
  argv.insert(argv.end(), launch.begin(), launch.end());
  Process running({.argv = argv, .folder = lab_->folder});
  const auto wait_for = [&](const std::string& script) {
    return lab_->exec("1", {"timeout", "60", "sh", "-c", fmt::format("until {}; do sleep 0.2; done", script)}, {70})
        .ok();
  };
  const std::string ask =
      "curl -sf http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' -d "
      "'{\"model\":\"nano\",\"prompt\":\"MTU\",\"max_tokens\":1}' > /dev/null";
  std::string lines;
  for (const Deadline limit = Deadline::after(Seconds{60}); lines.find("yoke guard: ready:") == std::string::npos;) {
    const auto line = running.read_line(limit);
    ASSERT_TRUE(line) << lines << on("1", "cat /tmp/docker/log");
    lines += line->text + "\n";
  }
  const std::string first = containers();
  EXPECT_THAT(first, HasSubstr("yoke-boxed "));
  on("1", "docker kill yoke-boxed");
  EXPECT_TRUE(wait_for(
      fmt::format("[ \"$(docker ps --format '{{{{.Names}}}} {{{{.ID}}}}')\" != '{}' ] && {}", trim(first), ask)));
  EXPECT_NE(containers(), first);
  ASSERT_EQ(kill(running.pid(), SIGINT), 0);
  const auto end = running.wait(Deadline::after(Seconds{60}));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_status, 130) << end->out << end->err;
  EXPECT_THAT(end->err, HasSubstr("start 2 of 5")) << end->out;
  EXPECT_EQ(containers(), "") << "Ctrl-C leaves no container";
}

TEST_F(LabDocker, ADaemonThatIsDownIsNotAMissingImage) {
  on("2", "kill $(cat /tmp/docker/pid); while pgrep -x dockerd > /dev/null; do sleep 0.1; done");
  const Outcome outcome =
      lab_->yoke({"launch", path("boxed.yaml"), path("nano"), "--through", "docker", "--image", kImage});
  EXPECT_EQ(outcome.exit_status, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("launch-docker-silent: node-2"));
  EXPECT_THAT(outcome.out, HasSubstr("systemctl start docker"));
}

}  // namespace
}  // namespace yoke::tests
