// The result of `yoke link test` for people.
#pragma once
#include <string>

#include "yoke/link/link_result.h"

namespace yoke {

std::string link_test_text(const LinkTestResult& result);

}  // namespace yoke
