// Any text as an NCCL log: read without harm, and whatever was read can be said, evaluated and printed.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/json.h"
#include "yoke/check/nccl_log.h"
#include "yoke/check/rule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  yoke::spec::NcclLog log;
  yoke::check::add_nccl_log(log, text);
  YOKE_CHECK(!yoke::check::describe(log).empty());
  YOKE_CHECK(!yoke::print_json(yoke::check::to_json(log)).empty());
  for (const yoke::spec::Finding& finding : yoke::check::evaluate({.log = log})) {
    YOKE_CHECK(!finding.rule.empty() && !finding.what.empty() && !finding.fix.empty());
  }
  YOKE_CHECK(log.lines > 0 || log.hosts.empty(), "{} hosts", log.hosts.size());
  return 0;
}
