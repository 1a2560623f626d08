#include "yoke/probe/flow_control.h"

#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

namespace yoke::probe {
namespace {

// One attribute, padded as the kernel pads it.
std::string attribute(unsigned short type, const std::string& value) {
  const rtattr header{.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size())), .rta_type = type};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += value;
  bytes.resize(RTA_ALIGN(bytes.size()));
  return bytes;
}

template <class T>
std::string bytes_of_struct(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string app(unsigned char selector, unsigned short protocol, unsigned char priority) {
  return attribute(DCB_ATTR_IEEE_APP,
                   bytes_of_struct(dcb_app{.selector = selector, .priority = priority, .protocol = protocol}));
}

FlowControl of_port(unsigned char pfc, const std::string& apps) {
  return parse_flow_control(
      attribute(DCB_ATTR_IEEE, attribute(DCB_ATTR_IEEE_PFC, bytes_of_struct(ieee_pfc{.pfc_en = pfc})) +
                                   attribute(DCB_ATTR_IEEE_APP_TABLE, apps)));
}

TEST(FlowControl, PrioritiesAndDscpAreReadAsADriverReportsThem) {
  std::string usual;
  for (unsigned short dscp = 0; dscp < 64; ++dscp)
    usual += app(IEEE_8021QAZ_APP_SEL_DSCP, dscp, static_cast<unsigned char>(dscp / 8));
  EXPECT_EQ(of_port(1U << 3, usual).priorities, "3");
  EXPECT_EQ(of_port(1U << 3, usual).dscp, "usual");
  EXPECT_EQ(of_port(0, usual).priorities, "none");
  EXPECT_EQ(of_port(0x18, "").dscp, "none") << "sorted by VLAN tag";
  EXPECT_EQ(of_port(0x18, app(IEEE_8021QAZ_APP_SEL_ETHERTYPE, 0x8906, 3)).dscp, "none") << "of FCoE, not of DSCP";
  EXPECT_EQ(of_port(0x18, app(IEEE_8021QAZ_APP_SEL_DSCP, 26, 5) + app(IEEE_8021QAZ_APP_SEL_DSCP, 48, 6)).dscp, "26:5");
  EXPECT_EQ(of_port(0x18, app(IEEE_8021QAZ_APP_SEL_DSCP, 999, 5) + app(IEEE_8021QAZ_APP_SEL_DSCP, 1, 99)).dscp, "none");
}

TEST(FlowControl, WhatADriverDoesNotReportIsAbsent) {
  EXPECT_EQ(parse_flow_control({}).priorities, std::nullopt);
  EXPECT_EQ(parse_flow_control({}).dscp, std::nullopt);
  EXPECT_EQ(parse_flow_control(attribute(DCB_ATTR_IEEE, "x")).priorities, std::nullopt) << "torn";
}

}  // namespace
}  // namespace yoke::probe
