#include "yoke/base/socket.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

Deadline soon() { return Deadline::after(60_s); }  // what must come: long enough for any machine
Deadline short_wait() { return Deadline::after(50_ms); }

struct Pair {
  Socket client, server;
};
Pair connected(Socket listener) {
  Socket client = connect_tcp(listener.local(), {}, soon());
  Socket server = listener.accept(soon());
  return {std::move(client), std::move(server)};
}
Pair connected() { return connected(listen_tcp({"127.0.0.1", 0})); }

std::string receive(Socket& socket, std::size_t size, Deadline deadline = soon()) {
  std::string data(size, '\0');
  socket.receive_exact(std::as_writable_bytes(std::span(data)), deadline);
  return data;
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Endpoint, IsParsedAndPrintedInOneSpelling) {
  for (const std::string text : {"127.0.0.1:80", "[::1]:65535", "[fd00::1]:1", "0.0.0.0:0"}) {
    const Result<Endpoint> endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(to_string(*endpoint), text);
  }
  EXPECT_EQ(*parse_endpoint("[0:0::1]:7"), (Endpoint{"::1", 7}));
}

TEST(Endpoint, RefusesWhatIsNoAddressWithPort) {
  for (const std::string text :
       {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80", "[::1]", "[127.0.0.1]:80",
        "localhost:80", "1:80", "127.0.0.1:80 ", "[]:1", "127.0.0.256:1"}) {
    const Result<Endpoint> endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code(), ErrorCode::kInvalid);
  }
}

TEST(Socket, CarriesBytesBothWays) {
  auto [client, server] = connected();
  client.set_no_delay();
  client.set_reno();
  char name[16] = {};
  socklen_t length = sizeof name - 1;
  ASSERT_EQ(getsockopt(client.fd(), IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
  EXPECT_STREQ(name, "reno");
  client.send_all("hello", soon());
  EXPECT_EQ(receive(server, 5), "hello");
  server.send_all("", soon());
  server.send_all(std::string_view("\0x", 2), soon());
  EXPECT_EQ(receive(client, 2), std::string("\0x", 2));
  EXPECT_EQ(server.peer(), to_string(client.local()));
  EXPECT_EQ(client.peer(), to_string(server.local()));
}

TEST(Socket, ReportsThePortThatWasChosen) { EXPECT_GT(listen_tcp({"127.0.0.1", 0}).local().port, 0); }

TEST(Socket, CarriesBytesOverIpv6) {
  Result<Socket> listener = try_to([] { return listen_tcp({"::1", 0}); });
  if (!listener) GTEST_SKIP() << "this machine has no IPv6 on its loopback: " << listener.error().message();
  auto [client, server] = connected(*std::move(listener));
  client.send_all("six", soon());
  EXPECT_EQ(receive(server, 3), "six");
  EXPECT_EQ(server.peer().substr(0, 6), "[::1]:");
}

TEST(Socket, CarriesMoreThanItsBuffersFromTwoThreads) {
  auto [client, server] = connected();
  std::string data(20'000'003, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 >> 3);
  std::thread echo([&server = server, size = data.size()] {
    const std::string all = receive(server, size);
    server.send_all(all, soon());
  });
  std::thread sender([&client = client, &data] { client.send_all(data, soon()); });
  const std::string back = receive(client, data.size());  // while the other thread may still send
  sender.join();
  echo.join();
  EXPECT_TRUE(back == data);
}

TEST(Socket, ReportsTheEndOfTheStream) {
  auto [client, server] = connected();
  client.send_all("ab", soon());
  ASSERT_EQ(shutdown(client.fd(), SHUT_WR), 0);
  EXPECT_EQ(receive(server, 2), "ab");
  EXPECT_TRUE(is_error(error_of([&server = server] { receive(server, 1); }), ErrorCode::kUnavailable,
                       "closed the connection after 0 of 1 bytes"));
  server.send_all("still", soon());
  EXPECT_EQ(receive(client, 5), "still");
}

TEST(Socket, NamesAPeerThatClosesInMidMessage) {
  auto [client, server] = connected();
  client.send_all("abc", soon());
  const std::string name = server.peer();
  client.close();
  const Error error = error_of([&server = server] { receive(server, 10); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_MENTIONS(error.message(), name);
  EXPECT_MENTIONS(error.message(), "3 of 10 bytes");
}

TEST(Socket, DoesNotDieOfSendingToAClosedPeer) {
  auto [client, server] = connected();
  server.close();
  const Error error = error_of([&client = client] {
    for (;;) client.send_all(std::string(100'000, 'x'), soon());
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_MENTIONS(error.message(), client.peer());
}

TEST(Socket, StopsReceivingAtTheDeadline) {
  auto [client, server] = connected();
  client.send_all("abc", soon());
  const Error error = error_of([&server = server] { receive(server, 10, short_wait()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_MENTIONS(error.message(), "7 bytes from " + server.peer());
}

TEST(Socket, StopsSendingAtTheDeadline) {
  auto [client, server] = connected();
  const Error error = error_of([&client = client] { client.send_all(std::string(100 << 20, 'x'), short_wait()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_MENTIONS(error.message(), client.peer());
}

TEST(Socket, StopsAcceptingAtTheDeadline) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const Error error = error_of([&] { listener.accept(short_wait()); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_MENTIONS(error.message(), listener.peer());
}

TEST(Socket, StopsConnectingAtTheDeadline) {
  // Nobody accepts: once the queue is full the kernel drops what knocks, as a firewall does.
  Socket listener = listen_tcp({"127.0.0.1", 0}, {.backlog = 0});
  std::vector<Socket> waiting;
  const Error error = error_of([&] {
    for (int i = 0; i < 64; ++i) waiting.push_back(connect_tcp(listener.local(), {}, Deadline::after(200_ms)));
  });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_MENTIONS(error.message(), to_string(listener.local()));
}

TEST(Socket, NamesAPortThatRefuses) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint closed = listener.local();
  listener.close();
  const Error error = error_of([&] { connect_tcp(closed, {}, soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_MENTIONS(error.message(), to_string(closed));
}

TEST(Socket, NamesAPortInUse) {
  const Socket listener = listen_tcp({"127.0.0.1", 0});
  EXPECT_ERROR(listen_tcp(listener.local()), ErrorCode::kConflict, to_string(listener.local()), "choose another");
}

TEST(Socket, LeavesFromTheAddressThatWasAsked) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const Socket client = connect_tcp(listener.local(), {.source_address = "127.0.0.2"}, soon());
  EXPECT_EQ(client.local().address, "127.0.0.2");
  EXPECT_ERROR(connect_tcp(listener.local(), {.source_address = "192.0.2.1"}, soon()), ErrorCode::kUnavailable,
               "from the address 192.0.2.1");
}

TEST(Socket, LeavesByTheDeviceThatWasAsked) {
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const Error error = error_of([&] { connect_tcp(listener.local(), {.device = "no-such-if"}, soon()); });
  EXPECT_MENTIONS(error.message(), "no-such-if");
  const Result<Socket> client = try_to([&] { return connect_tcp(listener.local(), {.device = "lo"}, soon()); });
  if (!client) GTEST_SKIP() << "binding to a device is not allowed here: " << client.error().message();
  EXPECT_TRUE(*client);
}

TEST(UnixSocket, CarriesBytesAndRemovesItsFile) {
  const ScratchDir scratch;
  const auto path = scratch.path() / "socket";
  {
    Socket listener = listen_unix(path);
    Socket client = connect_unix(path, soon());
    Socket server = listener.accept(soon());
    client.send_all("hello", soon());
    EXPECT_EQ(receive(server, 5), "hello");
    EXPECT_EQ(server.peer(), path.native());
    EXPECT_ERROR(receive(client, 1, short_wait()), ErrorCode::kTimeout, "waited too long for 1 bytes");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_ERROR(connect_unix(path, soon()), ErrorCode::kNotFound, "socket: No such file");
}

TEST(UnixSocket, ReplacesAFileThatNobodyListensOnButNotOneInUse) {
  const ScratchDir scratch;
  const auto path = scratch.path() / "socket";
  {
    Socket listener = listen_unix(path);
    std::filesystem::create_hard_link(path, scratch.path() / "left");
  }
  std::filesystem::rename(scratch.path() / "left", path);
  EXPECT_ERROR(connect_unix(path, soon()), ErrorCode::kUnavailable, "Connection refused");
  Socket listener = listen_unix(path);
  EXPECT_ERROR(listen_unix(path), ErrorCode::kConflict, "Address already in use");
  EXPECT_TRUE(connect_unix(path, soon()));
}

TEST(UnixSocket, RefusesAPathThatIsTooLong) {
  const Error error = error_of([] { listen_unix("/tmp/" + std::string(200, 'x')); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalid);
  EXPECT_MENTIONS(error.hint(), "107 bytes");
}

TEST(UnixSocket, StopsConnectingAtTheDeadline) {
  const ScratchDir scratch;
  Socket listener = listen_unix(scratch.path() / "socket");
  ASSERT_EQ(listen(listener.fd(), 0), 0);
  std::vector<Socket> waiting;
  const Error error = error_of([&] {
    for (int i = 0; i < 64; ++i) waiting.push_back(connect_unix(scratch.path() / "socket", short_wait()));
  });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace yoke
