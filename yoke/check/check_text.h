// What `yoke check` prints, for people, for scripts, and for a post in a forum.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/check/changes.h"
#include "yoke/spec/finding.h"
#include "yoke/spec/survey.h"

namespace yoke::check {

struct CheckReport {
  spec::Survey facts;
  std::vector<spec::Finding> findings;
  std::vector<spec::Finding> withheld;        // what was not evaluated, as a machine was busy
  std::string not_measured;                   // why; empty: it was
  std::optional<std::string> node = {};       // only findings about this one are shown
  std::vector<spec::Finding> elsewhere = {};  // those about others

  bool reached_all_nodes() const;
  int exit_status() const;  // 0 clean, 1 findings, 2 a node could not be looked at, 3 clean but not all measured
};

std::string report_text(const CheckReport& report);
Document report_json(const CheckReport& report);
std::string changes_text(const std::vector<FactChange>& changes, const std::string& since);
// One page of Markdown without secrets. `names`: of users, to be left out.
std::string paste_text(const CheckReport& report, const std::vector<std::string>& names);

}  // namespace yoke::check
