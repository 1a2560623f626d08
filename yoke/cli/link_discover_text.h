// What a discovery found, for people and as JSON (docs/link-discover.md describes both).
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/link/discover.h"
#include "yoke/spec/finding.h"

namespace yoke {

std::string discovery_text(const DiscoverResult& result, const std::vector<Finding>& findings);
Document discovery_json(const DiscoverResult& result, const std::vector<Finding>& findings);

}  // namespace yoke
