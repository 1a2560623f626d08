// What a discovery found, for people and as JSON (docs/link-discover.md describes both).
#pragma once
#include <string>

#include "yoke/base/document.h"
#include "yoke/link/discover.h"

namespace yoke {

std::string discovery_text(const DiscoverResult& result);
Document discovery_json(const DiscoverResult& result);

}  // namespace yoke
