#include "yoke/check/redact.h"

#include <gtest/gtest.h>

namespace yoke::check {
namespace {

TEST(Redact, PublicAddressesGoPrivateOnesStay) {
  EXPECT_EQ(redact("203.0.113.7/24 and 8.8.8.8:53, 192.168.100.10/24, 10.77.0.1, 169.254.35.62, 172.17.0.1."),
            "x.x.x.x/24 and x.x.x.x:53, 192.168.100.10/24, 10.77.0.1, 169.254.35.62, 172.17.0.1.");
  EXPECT_EQ(redact("172.32.0.1 eth0:1.2.3.4"), "x.x.x.x eth0:x.x.x.x");
}

TEST(Redact, VersionsPciAddressesAndTimesStay) {
  const std::string text = "kernel 6.14.0-1013-nvidia, driver 580.126.09, 0002:01:00.0, 10:15:02, NCCL 2.28.9+cuda13.0";
  EXPECT_EQ(redact(text), text);
}

TEST(Redact, MacAddressesKeepTheirMakerOnly) { EXPECT_EQ(redact("mac 4c:bb:47:0a:10:00."), "mac 4c:bb:47:xx:xx:xx."); }

TEST(Redact, NamesMadeOfMacAddressesKeepTheMakerOnly) {
  EXPECT_EQ(redact("NCCL_SOCKET_IFNAME=enx00e04c680001, enx00e04c680001:192.168.1.2, wlx00e04cabcdef.100"),
            "NCCL_SOCKET_IFNAME=enx00e04cxxxxxx, enx00e04cxxxxxx:192.168.1.2, wlx00e04cxxxxxx.100");
  EXPECT_EQ(redact("enxyz enx0 enP7s7"), "enxyz enx0 enP7s7");
}

TEST(Redact, Ipv6AddressesGidsAndGuidsGo) {
  EXPECT_EQ(redact("fe80::4ebb:47ff:fe0a:1000/64"), "fe80::x/64");
  EXPECT_EQ(redact("2001:db8::1"), "x:x::x");
  EXPECT_EQ(redact("fe80:0000:0000:0000:4ebb:47ff:fe0a:1000"), "fe80::x");
  EXPECT_EQ(redact("4cbb:4703:000a:1000"), "x:x::x");
}

TEST(Redact, WhatStandsBehindAKeyGoesToo) {
  EXPECT_EQ(redact("NCCL_SOCKET_IFNAME=fe80::4ebb:47ff:fe0a:1000"), "NCCL_SOCKET_IFNAME=fe80::x");
  EXPECT_EQ(redact("x=4c:bb:47:0a:10:00"), "x=4c:bb:47:xx:xx:xx");
  EXPECT_EQ(redact("NCCL_SOCKET_IFNAME=password=hunter2"), "NCCL_SOCKET_IFNAME=password=(left out)");
  EXPECT_EQ(redact("NCCL_NET_PLUGIN=https://user:pw@host.example.com/x"),
            "NCCL_NET_PLUGIN=https://(left out)@host.example.com/x");
}

TEST(Redact, TokensPasswordsAndSerialsGo) {
  EXPECT_EQ(redact("HF_TOKEN=hunter2"), "HF_TOKEN=(left out)");
  EXPECT_EQ(redact("password:abc"), "password:(left out)");
  EXPECT_EQ(redact("DGX_SERIAL_NUMBER=123"), "DGX_SERIAL_NUMBER=(left out)");
  EXPECT_EQ(redact("hf_abcdefghijklmnop"), "(left out)");
  EXPECT_EQ(redact("0123456789abcdef0123456789abcdef"), "(left out)");
  EXPECT_EQ(redact("GPU-00000000-0000-4000-8000-000000000001"), "(left out)");
}

TEST(Redact, UserNamesAndHomesGo) {
  EXPECT_EQ(redact("alice ran /home/bob/x as alice.", {"alice"}), "user ran /home/user/x as user.");
  EXPECT_EQ(redact("malice", {"alice"}), "malice");
}

TEST(Redact, OrdinaryWordsStay) {
  const std::string text = "| A of 0 | enp1s0f0np0 | up | rocep1s0f0 ACTIVE | 28.45.4028 | 3 |\nrail-unaddressed: x";
  EXPECT_EQ(redact(text), text);
}

}  // namespace
}  // namespace yoke::check
