// The findings of a check in the form of Prometheus' textfile collector.
#pragma once
#include <string>
#include <vector>

#include "yoke/spec/finding.h"

namespace yoke::check {

std::string prometheus_text(const std::vector<spec::Finding>& findings, double examined_at);
// Error(kUsage) where the name does not end in .prom.
void write_prometheus(const std::string& file, const std::vector<spec::Finding>& findings);

}  // namespace yoke::check
