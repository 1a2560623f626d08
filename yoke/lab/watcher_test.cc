#include "yoke/lab/watcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/lab/hardware.h"
#include "yoke/lab/hardware_changes.h"
#include "yoke/lab/watcher_meminfo.h"
#include "yoke/lab/watcher_netlink.h"

namespace yoke::lab {
namespace {

namespace fs = std::filesystem;
using namespace literals;

const std::string kPort = "/sys/class/infiniband/rocep1s0f0/ports/1/";

bool eventually(const std::function<bool()>& holds) {
  const Deadline deadline = Deadline::after(2_s);
  while (!holds()) {
    if (deadline.expired()) return false;
    real_clock().sleep(5_ms);
  }
  return true;
}

#define EXPECT_SOON(condition) EXPECT_TRUE(eventually([&] { return (condition); })) << #condition

void ip(const std::string& words) {
  std::vector<std::string> argv = {"ip"};
  for (std::string& word : split(words, ' ')) argv.push_back(std::move(word));
  run_or_throw({.argv = argv, .timeout = 10_s});
}

// A node's root in a folder, and a network namespace of its own.
class InANetworkNamespace : public testing::Test {
 protected:
  // Runs on a thread of its own, as the namespace belongs to a thread and cannot be left without more rights.
  void in_namespace(const std::function<void()>& body) {
    std::string reason;
    std::thread([&] {
      if (unshare(CLONE_NEWNET) != 0) {
        reason = fmt::format("no network namespace: {}", std::strerror(errno));
        return;
      }
      if (!try_to([] { ip("link"); })) {
        reason = "ip is missing";
        return;
      }
      try {
        body();
      } catch (const Error& error) {
        ADD_FAILURE() << error.message();
      }
    }).join();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  void lay_out() {
    write_tree(lab_hardware({.machine = "spark", .node = 1}), root_);
    fs::create_directories(root_ / "run/yoke-lab");
  }
  std::string see(const std::string& path) { return DiskTree(root_).read_trimmed(path).value_or("(absent)"); }
  void set_faults(std::string_view json) { write_file_atomically(root_ / "run/yoke-lab/hardware-faults.json", json); }

  ScratchDir scratch_;
  const fs::path root_ = scratch_.path() / "root";
};

// Stops and joins at the end of the scope. A new thread is in the namespace of the one that starts it.
class WatcherThread {
 public:
  explicit WatcherThread(WatcherOptions options)
      : thread_([options = std::move(options)](std::stop_token stop) mutable {
          options.stop = std::move(stop);
          options.signals = WatcherSignals::kLeave;
          watch_hardware(options);
        }) {}

 private:
  std::jthread thread_;
};

constexpr std::string_view kMapped = "0000:0000:0000:0000:0000:ffff:c0a8:640a";
constexpr std::string_view kEmpty = "0000:0000:0000:0000:0000:0000:0000:0000";

TEST_F(InANetworkNamespace, InterfacesAreReadWithAddressesInOrder) {
  in_namespace([&] {
    ip("link add enp1s0f0np0 address 4c:bb:47:0a:10:00 type veth peer name peer");
    ip("addr add 192.168.100.10/24 dev enp1s0f0np0");
    ip("addr add 10.0.0.7 peer 10.0.0.8/32 dev enp1s0f0np0");
    ip("addr add 2001:db8::5/64 dev enp1s0f0np0");
    const auto state_of = [](std::string_view name) {
      const std::vector<InterfaceState> all = read_interfaces();
      const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
      return found == all.end() ? InterfaceState{} : *found;
    };
    InterfaceState state = state_of("enp1s0f0np0");
    EXPECT_FALSE(state.up || state.carrier);
    EXPECT_EQ(state.mac, parse_mac("4c:bb:47:0a:10:00"));
    EXPECT_EQ(state.ipv4, (std::vector<Ipv4>{{0xc0a8640a}, {0x0a000007}}));
    ASSERT_EQ(state.ipv6.size(), 1U);
    EXPECT_EQ(to_string(state.ipv6[0]), "2001:0db8:0000:0000:0000:0000:0000:0005");
    EXPECT_TRUE(state.counters);
    ip("link set enp1s0f0np0 up");
    EXPECT_TRUE(state_of("enp1s0f0np0").up);
    EXPECT_FALSE(state_of("enp1s0f0np0").carrier);
    ip("link set peer up");
    EXPECT_SOON(state_of("enp1s0f0np0").carrier);
    EXPECT_EQ(state_of("lo").name, "lo");
    EXPECT_EQ(state_of("none").name, "");
  });
}

TEST_F(InANetworkNamespace, TheTreeFollowsLinksAddressesAndFaults) {
  in_namespace([&] {
    lay_out();
    ip("link add enp1s0f0np0 address 4c:bb:47:0a:10:00 type veth peer name peer");
    const WatcherThread watcher({.root = root_, .link_period = 60_s});  // the kernel's messages have to do
    EXPECT_EQ(see(kPort + "state"), "1: DOWN");

    ip("link set enp1s0f0np0 up");
    ip("link set peer up");
    EXPECT_SOON(see(kPort + "state") == "4: ACTIVE");
    EXPECT_EQ(see(kPort + "rate"), "200 Gb/sec (4X HDR)");
    ip("addr add 192.168.100.10/24 dev enp1s0f0np0");
    EXPECT_SOON(see(kPort + "gids/3") == kMapped);
    EXPECT_EQ(see(kPort + "gid_attrs/types/3"), "RoCE v2");

    set_faults(R"({"gid_drift": ["rocep1s0f0"], "narrow_pcie": ["0000:01:00.0"], "port_speed_100": ["rocep1s0f0"]})");
    EXPECT_SOON(see(kPort + "gids/4") == kMapped && see(kPort + "gids/3") == kEmpty);
    EXPECT_SOON(see("/sys/bus/pci/devices/0000:01:00.0/current_link_width") == "2");
    EXPECT_EQ(see(kPort + "rate"), "100 Gb/sec (4X EDR)");
    set_faults(R"({"gid_drift": ["no-such-device"]})");
    real_clock().sleep(400_ms);
    EXPECT_EQ(see(kPort + "gids/4"), kMapped) << "the last good faults stay in force";
    fs::remove(root_ / "run/yoke-lab/hardware-faults.json");
    EXPECT_SOON(see(kPort + "gids/4") == kEmpty && see(kPort + "gids/3") == kMapped);
    EXPECT_SOON(see("/sys/bus/pci/devices/0000:01:00.0/current_link_width") == "4");
    EXPECT_EQ(see(kPort + "rate"), "200 Gb/sec (4X HDR)");

    ip("addr del 192.168.100.10/24 dev enp1s0f0np0");
    EXPECT_SOON(see(kPort + "gids/3") == kEmpty && see(kPort + "gid_attrs/types/3") == "(absent)");
    ip("link set peer down");
    EXPECT_SOON(see(kPort + "state") == "1: DOWN" && see(kPort + "rate") == "40 Gb/sec (4X QDR)");
    EXPECT_TRUE(hardware_changes(DiskTree(root_), {}, {}).size() <= 6) << "only counters may differ from the start";
    ip("link del enp1s0f0np0");
  });
}

TEST_F(InANetworkNamespace, CountersAreLookedAtFromTimeToTime) {
  in_namespace([&] {
    lay_out();
    ip("link add enp1s0f0np0 type veth peer name peer");
    ip("link set enp1s0f0np0 up");
    ip("link set peer up");
    ip("addr add 192.168.100.10/24 dev enp1s0f0np0");
    const WatcherThread watcher({.root = root_, .link_period = 100_ms});
    EXPECT_SOON(see(kPort + "gids/3") == kMapped);
    const auto sent = [&] { return std::atoll(see(kPort + "counters/port_xmit_data").c_str()); };
    const auto before = sent();
    (void)try_to([&] { connect_tcp({"192.168.100.11", 9}, {}, Deadline::after(100_ms)); });  // nobody answers
    EXPECT_SOON(sent() > before) << "at least the question who has that address";
  });
}

TEST_F(InANetworkNamespace, SigtermEndsItAndSighupMakesItLookAtOnce) {
  in_namespace([&] {
    lay_out();
    // A process of its own: signals go to processes. They are blocked before it starts, so that none comes too early.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    if (child == 0) {
      const auto outcome = try_to([&] { watch_hardware({.root = root_, .link_period = 60_s, .fault_period = 60_s}); });
      _exit(outcome ? 0 : 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ASSERT_GT(child, 0);
    real_clock().sleep(100_ms);  // it has looked once
    set_faults(R"({"narrow_pcie": ["0000:01:00.0"]})");
    ASSERT_EQ(kill(child, SIGHUP), 0);
    EXPECT_SOON(see("/sys/bus/pci/devices/0000:01:00.0/current_link_width") == "2");
    // The sender may wait for the answer: then the tree has followed.
    EXPECT_SOON(see(std::string(kHardwareLooksPath)) == "1");
    fs::remove(root_ / "run/yoke-lab/hardware-faults.json");
    ASSERT_EQ(kill(child, SIGHUP), 0);
    EXPECT_SOON(see(std::string(kHardwareLooksPath)) == "2");
    EXPECT_EQ(see("/sys/bus/pci/devices/0000:01:00.0/current_link_width"), "4");
    kill(child, SIGTERM);
    int status = -1;
    EXPECT_SOON(waitpid(child, &status, WNOHANG) == child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  });
}

TEST(Meminfo, ShowsTheLimitAndWhatIsLeftOfIt) {
  const MemoryTree real = load_tree(fs::path(YOKE_SOURCE_DIR) / "tests/fixtures/spark-pair/machine.tree");
  const std::string text = lab_meminfo(real, 512_MiB, 112_MiB);
  EXPECT_TRUE(
      text.starts_with("MemTotal:         524288 kB\nMemFree:          409600 kB\nMemAvailable:     409600 kB\n"))
      << text;
  EXPECT_NE(text.find("SwapTotal:             0 kB\nSwapFree:              0 kB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("HugePages_Total:       0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Hugepagesize:       2048 kB\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Cached:           114688 kB\n"), std::string::npos) << text;
  EXPECT_EQ(text.size(), lab_meminfo(real, 512_MiB, 0_B).size()) << "one write replaces the whole text";
}

TEST(Meminfo, NoAmountIsNegativeOrBeyondTheTotal) {
  const DiskTree machine;
  const MemoryTree empty;
  for (const FileTree* real : {static_cast<const FileTree*>(&machine), static_cast<const FileTree*>(&empty)}) {
    for (const Bytes used : {0_B, 1_B, 512_MiB, 513_MiB, Bytes{-1}}) {
      const std::string text = lab_meminfo(*real, 512_MiB, used);
      EXPECT_NE(text.find("SwapTotal:             0 kB\n"), std::string::npos) << text;
      for (const std::string& line : split(text, '\n')) {
        if (!line.ends_with(" kB") || line.starts_with("Vmalloc")) continue;
        const long long value = std::atoll(line.substr(line.find(':') + 1).c_str());
        EXPECT_TRUE(value >= 0 && value <= 512 * 1024) << line;
      }
    }
  }
}

TEST(Meminfo, UsageIsWithoutTheCacheThatCanBeGivenBack) {
  const ScratchDir scratch;
  const fs::path v1 = scratch.path() / "v1";
  const fs::path v2 = scratch.path() / "v2";
  for (const fs::path& folder : {v1, v2}) fs::create_directory(folder);
  write_file_atomically(v1 / "memory.usage_in_bytes", "10000\n");
  write_file_atomically(v1 / "memory.stat", "inactive_file 1\ntotal_inactive_file 3000\ntotal_active_file 1000\n");
  write_file_atomically(v2 / "memory.current", "10000\n");
  write_file_atomically(v2 / "memory.stat", "anon 7\ninactive_file 20000\nactive_file 1\n");
  EXPECT_EQ(cgroup_memory_used(v1 / "memory.usage_in_bytes"), Bytes{6000});
  EXPECT_EQ(cgroup_memory_used(v2 / "memory.current"), Bytes{0});
  EXPECT_ERROR(cgroup_memory_used(scratch.path() / "memory.current"), ErrorCode::kNotFound,
               "memory.current: No such file");
}

TEST_F(InANetworkNamespace, MeminfoIsRewrittenInTheSameFile) {
  in_namespace([&] {
    lay_out();
    const fs::path group = scratch_.path() / "group";
    fs::create_directory(group);
    fs::create_directory(root_ / "proc");
    write_file_atomically(root_ / "proc/meminfo", "MemTotal: 24000000 kB\nCached: 9000000 kB\n");
    write_file_atomically(group / "memory.stat", "inactive_file 0\n");
    write_file_atomically(group / "memory.current", "0\n");
    const fs::path shown = root_ / "run/yoke-lab/meminfo";
    write_file_atomically(shown, "old");
    struct stat before {};
    ASSERT_EQ(stat(shown.c_str(), &before), 0);
    const WatcherThread watcher(
        {.root = root_, .memory_limit = 512_MiB, .memory_usage_file = group / "memory.current", .meminfo_file = shown});
    EXPECT_SOON(see("/run/yoke-lab/meminfo").find("MemAvailable:     524288 kB") != std::string::npos);
    write_file_atomically(group / "memory.current", fmt::format("{}\n", (112_MiB).value));
    EXPECT_SOON(see("/run/yoke-lab/meminfo").find("MemAvailable:     409600 kB") != std::string::npos);
    struct stat after {};
    ASSERT_EQ(stat(shown.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
  });
}

}  // namespace
}  // namespace yoke::lab
