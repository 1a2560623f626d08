#include "yoke/rank/peer_user.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace yoke::rank {
namespace {

using namespace literals;

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1680 1 0 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4 30 10 "
    "-1\n"
    "   2: 0100007F:1F91 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n"
    "   3: 0100007F:1F92 0100007F:9C40 06 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 "
    "-1\n";

TEST(PeerUser, IsWhatTheKernelsTableHolds) {
  const Endpoint remote{"127.0.0.1", 40000};
  EXPECT_EQ(user_of_connection(kTable, {"127.0.0.1", 8080}, remote), 1000);
  EXPECT_EQ(user_of_connection(kTable, {"127.0.0.1", 8081}, remote), -1) << "nobody has accepted it";
  EXPECT_EQ(user_of_connection(kTable, {"127.0.0.1", 8082}, remote), -1) << "it is closed";
  EXPECT_EQ(user_of_connection(kTable, {"127.0.0.2", 8080}, remote), -1);
  EXPECT_EQ(user_of_connection(kTable, {"::1", 8080}, remote), -1);
  EXPECT_EQ(user_of_connection("", {"127.0.0.1", 8080}, remote), -1);
}

TEST(PeerUser, IsUsOnBothEndsOfAConnectionOfOurs) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const Socket client = connect_tcp(listener.local(), {}, Deadline::after(5_s));
  const Socket server = listener.accept(Deadline::after(5_s));
  EXPECT_TRUE(is_of_this_user(client));
  EXPECT_TRUE(is_of_this_user(server));
}

}  // namespace
}  // namespace yoke::rank
