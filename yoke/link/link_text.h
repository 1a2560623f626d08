// What `yoke link test` and `yoke link discover` found, for people and as JSON (docs/link.md, docs/link-discover.md).
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/link/discover.h"
#include "yoke/link/link_result.h"
#include "yoke/spec/finding.h"

namespace yoke::link {

std::string link_test_text(const LinkTestResult& result);

std::string discovery_text(const DiscoverResult& result, const std::vector<spec::Finding>& findings);
Document discovery_json(const DiscoverResult& result, const std::vector<spec::Finding>& findings);

}  // namespace yoke::link
