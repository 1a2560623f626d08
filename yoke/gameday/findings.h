// Commands that look for what is wrong: `yoke check`, `yoke link test`, `yoke link discover`. What they find is an
// answer, whatever their exit status.
#pragma once
#include <string>
#include <vector>

#include "yoke/gameday/phase_run.h"

namespace yoke::gameday {

// What the command answers with --json, and its findings told. It looks once: what falls short the commands themselves
// measure again, and they report both.
Document look(PhaseRun& phase_run, const std::vector<std::string>& arguments);

bool is_clean(const Document& answer);
// Something was found, and each finding says that it is about this node and this rail: 'rail B'.
bool all_name(const Document& answer, const std::string& node, const std::string& rail);

}  // namespace yoke::gameday
