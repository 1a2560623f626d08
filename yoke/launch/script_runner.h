// A Python script that runs another one, which stands behind it in the command.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/error.h"

namespace yoke::launch {

// The words with the runner before the first that ends in ".py"; throws `no_script` where none does.
std::vector<std::string> with_runner(const std::vector<std::string>& words, const std::string& runner,
                                     const Error& no_script);

}  // namespace yoke::launch
