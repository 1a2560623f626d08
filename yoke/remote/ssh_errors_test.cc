#include "yoke/remote/ssh_errors.h"

#include <gtest/gtest.h>

namespace yoke::remote {
namespace {

const Host kHost{.name = "spark-2", .address = "192.168.1.22", .user = "nvidia", .port = 2222};

struct Case {
  const char* log;
  ErrorCode code;
  const char* message;
  const char* hint;
};

TEST(SshErrors, AreReportedByTheirCauseWithAHint) {
  // As OpenSSH 8.9 to 9.6 write them.
  const Case cases[] = {
      {"ssh: connect to host 192.168.1.22 port 2222: Connection refused\r\n", ErrorCode::kUnavailable, "refuses",
       "ssh server"},
      {"ssh: connect to host 192.168.1.22 port 2222: No route to host\r\n", ErrorCode::kUnavailable,
       "cannot be reached", "cable"},
      {"ssh: connect to host 192.168.1.22 port 2222: Network is unreachable\r\n", ErrorCode::kUnavailable, "no route",
       "ip route"},
      {"ssh: connect to host 192.168.1.22 port 2222: Connection timed out\r\n", ErrorCode::kTimeout, "in time",
       "firewall"},
      {"Connection timed out during banner exchange\r\nConnection to 192.168.1.22 port 2222 timed out\r\n",
       ErrorCode::kTimeout, "in time", "overloaded"},
      {"ssh: Could not resolve hostname spark-2: Name or service not known\r\n", ErrorCode::kUnavailable,
       "does not resolve", "/etc/hosts"},
      {"nvidia@192.168.1.22: Permission denied (publickey,password).\r\n", ErrorCode::kPermission, "password",
       "ssh-copy-id -p 2222 nvidia@192.168.1.22"},
      {"Received disconnect from 192.168.1.22 port 2222:2: Too many authentication failures\r\n",
       ErrorCode::kPermission, "too many keys", "IdentitiesOnly"},
      {"Host key verification failed.\r\n", ErrorCode::kPermission, "not known yet", "ssh -p 2222 nvidia@192.168.1.22"},
      {"No ED25519 host key is known for 192.168.1.22 and you have requested strict checking.\r\n"
       "Host key verification failed.\r\n",
       ErrorCode::kPermission, "not known yet", "fingerprint"},
      {"@@@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@@@@@@@\r\n"
       "Host key verification failed.\r\n",
       ErrorCode::kPermission, "not the one that is known", "ssh-keygen -R '[192.168.1.22]:2222'"},
      {"Unable to negotiate with 192.168.1.22 port 2222: no matching host key type found. Their offer: ssh-rsa\r\n",
       ErrorCode::kUnsupported, "algorithm", "update"},
      {"Timeout, server 192.168.1.22 not responding.\r\n", ErrorCode::kUnavailable, "lost", "cable"},
      {"kex_exchange_identification: something new\r\n", ErrorCode::kUnavailable, "something new", "ssh -p 2222"},
      {"", ErrorCode::kUnavailable, "was lost", "ssh -p 2222"},
  };
  for (const Case& each : cases) {
    const Error error = ssh_error(kHost, each.log);
    EXPECT_EQ(error.code(), each.code) << each.log;
    EXPECT_NE(error.message().find(each.message), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("spark-2 (192.168.1.22)"), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find(each.hint), std::string::npos) << error.hint();
  }
}

TEST(SshErrors, NameAHostOnceWhereItHasOneName) {
  EXPECT_EQ(describe({.name = "a", .address = "a"}), "a");
  EXPECT_EQ(describe({.address = "b"}), "b");
}

}  // namespace
}  // namespace yoke::remote
