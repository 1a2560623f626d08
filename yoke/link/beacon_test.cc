#include "yoke/link/beacon.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::link {
namespace {

Beacon example() {
  return {.node = "0123456789abcdef0123456789abcdef",
          .hostname = "spark-fb97",
          .interface = "enp1s0f0np0",
          .mac = "4c:bb:47:0a:10:00",
          .port = 0,
          .rail = "A",
          .version = "0.1.0",
          .address = parse_ipv4("192.168.1.21").value()};
}

// What a frame would hold whose JSON is `body`, whatever that is.
std::string framed(const std::string& body) {
  return "YOKEBCN1" + std::string{static_cast<char>(body.size() >> 8U), static_cast<char>(body.size())} + body;
}

TEST(Beacon, ReadsBackWithAndWithoutPadding) {
  const std::string payload = encode_beacon(example());
  EXPECT_EQ(parse_beacon(payload), example());
  EXPECT_EQ(parse_beacon(payload + std::string(100, '\x5a')), example());
  Beacon unaddressed = example();
  unaddressed.address.reset();
  EXPECT_EQ(parse_beacon(encode_beacon(unaddressed)), unaddressed);
}

TEST(Beacon, FitsAFrameWithTheLongestNames) {
  Beacon longest = example();
  longest.hostname = std::string(63, 'h');
  longest.interface = std::string(15, 'i');
  longest.version = std::string(63, '1');
  longest.port = 63;
  longest.address = parse_ipv4("192.168.100.100").value();
  EXPECT_LE(encode_beacon(longest).size(), 1500U);
  EXPECT_EQ(parse_beacon(encode_beacon(longest)), longest);
}

TEST(Beacon, EveryCutIsRefused) {
  const std::string payload = encode_beacon(example());
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_ERROR(parse_beacon(payload.substr(0, size)), ErrorCode::kInvalid, size < 8 ? "no beacon" : "cut off");
  }
}

TEST(Beacon, FramesOfOthersAreNoBeacons) {
  EXPECT_ERROR(parse_beacon(std::string("\x4c\xbb\x47\x0a\x10\x00TOPO_DISCOVER_2NODE_V2", 28)), ErrorCode::kInvalid,
               "no beacon");  // NVIDIA's script
  EXPECT_ERROR(parse_beacon("YOKEBCN2"), ErrorCode::kInvalid, "no beacon");
}

TEST(Beacon, WhatCouldHarmIsRefused) {
  const auto with = [](auto change) {
    Beacon beacon = example();
    change(beacon);
    return encode_beacon(beacon);
  };
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.node = "0123"; })), ErrorCode::kInvalid, "node");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.node[3] = 'G'; })), ErrorCode::kInvalid, "node");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.hostname = "-oProxyCommand=reboot"; })), ErrorCode::kInvalid,
               "hostname");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.hostname = "a\x1b[31m"; })), ErrorCode::kInvalid, "hostname");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.interface = "../../etc"; })), ErrorCode::kInvalid, "interface");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.interface = std::string(16, 'i'); })), ErrorCode::kInvalid,
               "interface");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.mac = "4C:BB:47:0A:10:00"; })), ErrorCode::kInvalid, "mac");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.mac = "4c:bb:47:0a:10:0"; })), ErrorCode::kInvalid, "mac");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.port = -1; })), ErrorCode::kInvalid, "port");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.port = 64; })), ErrorCode::kInvalid, "port");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.rail = "AB"; })), ErrorCode::kInvalid, "rail");
  EXPECT_ERROR(parse_beacon(with([](Beacon& b) { b.version = ""; })), ErrorCode::kInvalid, "version");
}

TEST(Beacon, UnknownKeysWrongTypesAndForeignAddressesAreRefused) {
  Document body = to_json(example());
  body.add("command", Document::string("reboot"));
  EXPECT_ERROR(parse_beacon(framed(print_json(body, JsonLayout::kOneLine))), ErrorCode::kInvalid,
               "unknown key 'command'");
  Document named = to_json(example());
  for (auto& [key, value] : named.fields) {
    if (key == "address") value = Document::string("evil.example");
  }
  EXPECT_ERROR(parse_beacon(framed(print_json(named, JsonLayout::kOneLine))), ErrorCode::kInvalid, "IPv4");
  EXPECT_ERROR(parse_beacon(framed("[]")), ErrorCode::kInvalid, "map");
  EXPECT_ERROR(parse_beacon(framed("")), ErrorCode::kInvalid, "beacon");
  EXPECT_ERROR(parse_beacon("YOKEBCN1\xff\xff" + std::string(70000, ' ')), ErrorCode::kInvalid, "too long");
}

}  // namespace
}  // namespace yoke::link
