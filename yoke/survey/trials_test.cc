#include "yoke/survey/trials.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "yoke/base/socket.h"

namespace yoke::survey {
namespace {

TEST(Trials, ReadsTheSettingsThatKeepARingsNodeFromPassingOn) {
  MemoryTree files;
  const auto set = [&](const char* place, const char* value) {
    files.add_file(std::string("/proc/sys/net/ipv4/conf/") + place, value);
  };
  const std::vector<spec::PathProbe> paths = {{.interface = "a"}, {.interface = "b"}};
  EXPECT_THAT(read_ring_settings(files, paths), testing::IsEmpty());
  set("all/rp_filter", "0\n");
  set("a/rp_filter", "1\n");
  set("b/rp_filter", "2\n");
  set("a/forwarding", "1\n");
  set("b/forwarding", "0\n");
  EXPECT_THAT(read_ring_settings(files, paths),
              testing::ElementsAre("net.ipv4.conf.a.rp_filter = 1", "net.ipv4.conf.b.forwarding = 0"));
  set("all/rp_filter", "2\n");
  EXPECT_THAT(read_ring_settings(files, paths), testing::ElementsAre("net.ipv4.conf.b.forwarding = 0"));
}

// A port of the loopback that nobody serves.
sockaddr_in unserved() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(listen_tcp({"127.0.0.1", 0}).local().port));
  return address;
}

UniqueFd connecting_socket(int type) {
  UniqueFd fd(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof on);
  const sockaddr_in address = unserved();
  connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

TEST(Trials, AResetIsNotTakenForAnIcmpMessage) {
  const UniqueFd fd = connecting_socket(SOCK_STREAM);
  pollfd waiting{fd.get(), POLLOUT, 0};
  poll(&waiting, 1, 2000);
  EXPECT_FALSE(came_by_icmp(fd));
}

TEST(Trials, AnIcmpMessageIsKnown) {
  const UniqueFd fd = connecting_socket(SOCK_DGRAM);
  ASSERT_EQ(send(fd.get(), "x", 1, 0), 1);
  pollfd waiting{fd.get(), 0, 0};  // POLLERR comes unasked
  ASSERT_EQ(poll(&waiting, 1, 5000), 1);
  EXPECT_TRUE(came_by_icmp(fd));
}

}  // namespace
}  // namespace yoke::survey
