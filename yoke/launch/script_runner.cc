#include "yoke/launch/script_runner.h"

#include <algorithm>

namespace yoke::launch {

std::vector<std::string> with_runner(const std::vector<std::string>& words, const std::string& runner,
                                     const Error& no_script) {
  const auto script = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  if (script == words.end()) throw no_script;
  std::vector<std::string> with = words;
  with.insert(with.begin() + (script - words.begin()), runner);
  return with;
}

}  // namespace yoke::launch
