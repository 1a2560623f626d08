// Findings as every command prints them.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/finding.h"

namespace yoke {

constexpr std::size_t kFindingsWidth = 100;  // columns

std::string findings_text(const std::vector<Finding>& findings);
Document findings_json(const std::vector<Finding>& findings);

}  // namespace yoke
