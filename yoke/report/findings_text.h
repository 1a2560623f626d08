// Findings as every command prints them.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/finding.h"

namespace yoke::report {

constexpr std::size_t kFindingsWidth = 100;  // columns; a terminal has its own

std::string findings_text(const std::vector<spec::Finding>& findings);
// What a busy machine keeps from being evaluated: one line that names it. `taken`: the share of the CPU that others
// took.
std::string withheld_text(const std::vector<spec::Finding>& withheld, double taken);
Document findings_json(const std::vector<spec::Finding>& findings);

}  // namespace yoke::report
