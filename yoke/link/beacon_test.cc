#include "yoke/link/beacon.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"

namespace yoke {
namespace {

Beacon example() {
  return {.node = "0123456789abcdef0123456789abcdef",
          .hostname = "spark-fb97",
          .interface = "enp1s0f0np0",
          .mac = "4c:bb:47:0a:10:00",
          .port = 0,
          .half = "A",
          .version = "0.1.0",
          .address = parse_ipv4("192.168.1.21").value()};
}

void expect_refused(std::string_view payload, std::string_view why) {
  try {
    const Beacon beacon = parse_beacon(payload);
    ADD_FAILURE() << "taken, from " << beacon.hostname << ": " << why;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    EXPECT_NE(error.message().find(why), std::string::npos) << error.message();
  }
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
    expect_refused(payload.substr(0, size), size < 8 ? "no beacon" : "cut off");
  }
}

TEST(Beacon, FramesOfOthersAreNoBeacons) {
  expect_refused(std::string("\x4c\xbb\x47\x0a\x10\x00TOPO_DISCOVER_2NODE_V2", 28), "no beacon");  // NVIDIA's script
  expect_refused("YOKEBCN2", "no beacon");
}

TEST(Beacon, WhatCouldHarmIsRefused) {
  const auto with = [](auto change) {
    Beacon beacon = example();
    change(beacon);
    return encode_beacon(beacon);
  };
  expect_refused(with([](Beacon& b) { b.node = "0123"; }), "node");
  expect_refused(with([](Beacon& b) { b.node[3] = 'G'; }), "node");
  expect_refused(with([](Beacon& b) { b.hostname = "-oProxyCommand=reboot"; }), "hostname");
  expect_refused(with([](Beacon& b) { b.hostname = "a\x1b[31m"; }), "hostname");
  expect_refused(with([](Beacon& b) { b.interface = "../../etc"; }), "interface");
  expect_refused(with([](Beacon& b) { b.interface = std::string(16, 'i'); }), "interface");
  expect_refused(with([](Beacon& b) { b.mac = "4C:BB:47:0A:10:00"; }), "mac");
  expect_refused(with([](Beacon& b) { b.mac = "4c:bb:47:0a:10:0"; }), "mac");
  expect_refused(with([](Beacon& b) { b.port = -1; }), "port");
  expect_refused(with([](Beacon& b) { b.port = 64; }), "port");
  expect_refused(with([](Beacon& b) { b.half = "AB"; }), "half");
  expect_refused(with([](Beacon& b) { b.version = ""; }), "version");
}

TEST(Beacon, UnknownKeysWrongTypesAndForeignAddressesAreRefused) {
  Document body = to_json(example());
  body.add("command", Document::string("reboot"));
  expect_refused(framed(print_json(body, JsonLayout::kOneLine)), "unknown key 'command'");
  Document named = to_json(example());
  for (auto& [key, value] : named.fields) {
    if (key == "address") value = Document::string("evil.example");
  }
  expect_refused(framed(print_json(named, JsonLayout::kOneLine)), "IPv4");
  expect_refused(framed("[]"), "map");
  expect_refused(framed(""), "beacon");
  expect_refused("YOKEBCN1\xff\xff" + std::string(70000, ' '), "too long");
}

}  // namespace
}  // namespace yoke
