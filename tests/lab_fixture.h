// A lab for one test: started by the built program under a name that nobody else has, gone with this. Its cluster file
// is cluster.yaml in a scratch folder, from which yoke() runs.
//
//   if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
//   TestLab lab({"--nodes", "3", "--topology", "ring"});
//   EXPECT_EQ(lab.exec("1", {"ssh", "spark-2", "hostname"}).out, "spark-2\n");
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/program.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"

namespace yoke::tests {

// Where a program lies; a login shell's PATH may lack the sbin folders.
inline std::optional<std::filesystem::path> find_program(const std::string& name) {
  for (const char* folder : {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

// Why a lab, or one with these further programs, cannot be had here; nothing where it can. Asked of the machine, not
// of the code under test.
inline std::optional<std::string> why_no_labs(const std::vector<std::string>& programs = {}) {
  if (geteuid() != 0) return "a lab needs root";
  for (const char* program : {"sshd", "ssh", "ssh-keygen", "ip", "tc", "unshare"}) {
    if (!find_program(program)) return fmt::format("a lab needs {}, which is not installed", program);
  }
  for (const std::string& program : programs) {
    if (!find_program(program)) return fmt::format("{} is not installed", program);
  }
  static const Outcome namespaces =
      run({.argv = {"unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true"}, .timeout = {20}});
  if (!namespaces.ok()) return "namespaces cannot be made here: unshare " + namespaces.describe();
  return std::nullopt;
}

// Sanitized programs want several times the memory that a node has unless more is asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct TestLab {
  explicit TestLab(std::vector<std::string> up_arguments = {}) {
    std::vector<std::string> arguments = {"lab", "up", "--name", name};
    if (kSanitized) arguments.insert(arguments.end(), {"--memory", "2GiB"});
    arguments.insert(arguments.end(), up_arguments.begin(), up_arguments.end());
    up = yoke(std::move(arguments));
    if (!up.ok()) throw Error(ErrorCode::kUnavailable, "yoke lab up " + up.describe() + "\n" + up.err);
  }
  ~TestLab() {
    // A test may have taken it down itself: then this says so, and nothing is wrong.
    const auto ignored = try_to([&] { return yoke({"lab", "down", "--name", name}); });
  }
  TestLab(const TestLab&) = delete;
  TestLab& operator=(const TestLab&) = delete;

  Outcome yoke(std::vector<std::string> arguments, Seconds timeout = {120}) const {
    return run_yoke(std::move(arguments), {.folder = folder, .timeout = timeout});
  }
  // `node` is a name or a number. The node sees this machine's files, but has a /tmp of its own.
  Outcome exec(const std::string& node, const std::vector<std::string>& argv, Seconds timeout = {60}) const {
    return run_yoke(exec_arguments(node, argv), {.folder = folder, .timeout = timeout});
  }
  // Copies a program into a node.
  Outcome put(const std::string& node, const std::filesystem::path& program, const std::string& target) const {
    return run_yoke(exec_arguments(node, {"install", "-m", "755", "/dev/stdin", target}),
                    {.folder = folder, .input_file = program, .timeout = {60}});
  }
  // The arguments of yoke for exec(), for a Process of one's own.
  std::vector<std::string> exec_arguments(const std::string& node, const std::vector<std::string>& argv) const {
    std::vector<std::string> arguments = {"lab", "exec", "--name", name, node, "--"};
    arguments.insert(arguments.end(), argv.begin(), argv.end());
    return arguments;
  }

  // Returns when the hardware tree of each node that is on shows what its interfaces and faults are now: the kernel has
  // told carrier changes on, and the node's watcher has looked after that (yoke/lab/watcher.h).
  void settle() const {
    static constexpr const char* kScript =
        "looks() { cat /run/yoke-lab/hardware-looks 2>/dev/null || echo 0; }; "
        "while ip -o link show up | grep -q -e 'LOWER_UP.*state [A-Z]*DOWN' -e '<[^>]*,UP>.*state UP'; do sleep 0.02; "
        "done; "
        "before=$(looks); kill -HUP $(pgrep -x yoke-watcher) || exit 1; "
        "while [ \"$(looks)\" = \"$before\" ]; do sleep 0.02; done";
    const Document status = parse_json(yoke({"lab", "status", "--name", name, "--json"}).out, "yoke lab status");
    for (const Document& node : status.find("labs")->items.at(0).find("nodes")->items) {
      if (node.find("on")->text != "true") continue;
      const Outcome outcome = exec(node.find("name")->text, {"timeout", "20", "sh", "-c", kScript}, {30});
      EXPECT_EQ(outcome.exit_status, 0) << node.find("name")->text << " does not settle: " << outcome.err;
    }
  }

  const ScratchDir scratch{"yoke-test-lab"};
  const std::string name = "test-" + random_token_hex(4);
  const std::filesystem::path folder = scratch.path();
  Outcome up;  // of `yoke lab up`
};

}  // namespace yoke::tests
