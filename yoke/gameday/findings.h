// Commands that look for what is wrong: `yoke check`, `yoke link test`, `yoke link discover`. What they find is an
// answer, whatever their exit status.
#pragma once
#include <string>
#include <vector>

#include "yoke/gameday/scene.h"

namespace yoke {

// What the command answers with --json, and its findings told.
Document look(Scene& scene, const std::vector<std::string>& arguments);
// The same where nothing should be found, once more where something is, with these further words: what else a machine
// does can look like a slow half or a lost beacon, and is over by the next look. A fault stays.
Document look_for_nothing(Scene& scene, std::vector<std::string> arguments,
                          const std::vector<std::string>& words_again = {});

bool is_clean(const Document& answer);
// Something was found, and each finding says that it is about this node and this half: 'half B'.
bool all_name(const Document& answer, const std::string& node, const std::string& half);

}  // namespace yoke
