// Any text as an NCCL log: read without harm, and whatever was read can be said, judged and printed.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/json.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/rule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const yoke::NcclLog log = yoke::parse_nccl_log(text);
  YOKE_CHECK(!yoke::describe(log).empty());
  YOKE_CHECK(!yoke::print_json(to_json(log)).empty());
  for (const yoke::Finding& finding : yoke::judge({.log = log})) {
    YOKE_CHECK(!finding.rule.empty() && !finding.what.empty() && !finding.fix.empty());
  }
  YOKE_CHECK(log.lines > 0 || log.hosts.empty(), "{} hosts", log.hosts.size());
  return 0;
}
