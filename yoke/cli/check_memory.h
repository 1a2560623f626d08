// The last check that was clean, remembered for each cluster under the user's data folder, so that `yoke check
// --changed` can tell what is different since all was well.
#pragma once
#include <optional>
#include <string>

#include "yoke/spec/survey.h"

namespace yoke {

struct RememberedCheck {
  std::string when;  // "2026-11-15T10:42:00Z"
  Survey facts;
};

// `key`: the cluster's name, or nothing for this machine alone.
void remember_check(const std::optional<std::string>& key, const Survey& facts);
// Throws Error(kInvalid) naming the file where it cannot be read.
std::optional<RememberedCheck> recall_check(const std::optional<std::string>& key);

}  // namespace yoke
