// Commands that look for what is wrong: `yoke check`, `yoke link test`, `yoke link discover`. What they find is an
// answer, whatever their exit status.
#pragma once
#include <string>
#include <vector>

#include "yoke/gameday/scene.h"

namespace yoke {

// What the command answers with --json, and its findings told. It looks once: what falls short the commands themselves
// measure again, and they report both.
Document look(Scene& scene, const std::vector<std::string>& arguments);

bool is_clean(const Document& answer);
// Something was found, and each finding says that it is about this node and this half: 'half B'.
bool all_name(const Document& answer, const std::string& node, const std::string& half);

}  // namespace yoke
