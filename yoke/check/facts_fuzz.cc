// Any facts that can be read at all, however absurd: every rule answers without harm, and each finding is whole.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/check/changes.h"
#include "yoke/check/rule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts = yoke::try_to([&] { return from_json<yoke::spec::Survey>(yoke::parse_json(text, "facts")); });
  if (!facts) {
    YOKE_CHECK(!facts.error().message().empty());
    return 0;
  }
  for (const yoke::spec::Finding& finding : yoke::check::evaluate(*facts)) {
    YOKE_CHECK(!finding.rule.empty() && !finding.what.empty() && !finding.consequence.empty(), "{}", finding.rule);
  }
  YOKE_CHECK(yoke::check::find_changes(*facts, *facts).empty());
  YOKE_CHECK(from_json<yoke::spec::Survey>(yoke::parse_json(yoke::print_json(yoke::spec::to_json(*facts)), "again")) ==
             *facts);
  return 0;
}
