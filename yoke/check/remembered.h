// The last check that was clean, remembered for each cluster under the user's data folder, so that `yoke check
// --changed` can tell what is different since all was well.
#pragma once
#include <optional>
#include <string>

#include "yoke/spec/survey.h"

namespace yoke::check {

struct RememberedCheck {
  std::string when;  // "2026-11-15T10:42:00Z"
  spec::Survey facts;
};

// `key`: the cluster's name, or nothing for this machine alone.
void remember_check(const std::optional<std::string>& key, const spec::Survey& facts);
// Throws Error(kInvalid) naming the file where it cannot be read.
std::optional<RememberedCheck> recall_check(const std::optional<std::string>& key);

// Of every machine that was measured: its record goes into the survey's canaries, so that the rules can evaluate them,
// and a better rate of a machine that was not busy becomes the record. A record is of one machine with one kind of
// processor. The file cannot be read: a warning, and no records.
void update_memory_records(spec::Survey& facts);

}  // namespace yoke::check
