// Any text in place of what nft and iptables print: it is read without harm, and what is told to drop is in it.
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/survey/packet_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> interfaces = {"enp1s0f0np0", "enP2p1s0f0np0"};
  if (const auto ruleset = yoke::try_to([&] { return yoke::parse_json(text, "ruleset"); })) {
    const auto drop = yoke::survey::find_forward_drop(*ruleset, interfaces);
    if (drop)
      YOKE_CHECK(drop->where.starts_with("chain ") && yoke::survey::has_dropping_rule(*ruleset), "{}", drop->where);
  }
  yoke::spec::SurveyedNode node;
  yoke::survey::read_forward_rules(text, interfaces, node);
  YOKE_CHECK(!node.forward_policy || text.find("FORWARD") != std::string_view::npos);
  return 0;
}
